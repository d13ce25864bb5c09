/** Stands in for the writer Worker: dies at its first group of writes, outside of any `try`. */

self.onmessage = ({ data }: MessageEvent<{ kind: string }>) => {
  if (data.kind === "group") throw new Error("the worker broke");
};
