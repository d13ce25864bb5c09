/** Replaces the writer Worker: crashes at its first batch of writes. */

self.onmessage = ({ data }: MessageEvent<{ kind: string }>) => {
  if (data.kind === "group") throw new Error("the worker broke");
};
