/** Replaces the search Worker: crashes at its first search. */

self.onmessage = ({ data }: MessageEvent<{ kind: string }>) => {
  if (data.kind === "search") throw new Error("the worker broke");
};
