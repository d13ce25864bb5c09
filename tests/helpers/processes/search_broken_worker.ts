/** Stands in for the search Worker: dies at its first search, outside of any `try`. */

self.onmessage = ({ data }: MessageEvent<{ kind: string }>) => {
  if (data.kind === "search") throw new Error("the worker broke");
};
