import { expect, test } from "vitest";
import { ContextSizes } from "../../../services/llm/context_sizes.ts";
import { target } from "./model_calls.ts";

const asked = { target: target("http://127.0.0.1:9/v1"), model: "m" };

test("uses the configured context size, else the server's, else a default", async () => {
  let asks = 0;
  const sizes = new ContextSizes({
    readContextSize: (_, model) => Promise.resolve(asks++ >= 0 && model === "known" ? 4096 : undefined),
  });
  expect(await sizes.lookUp({ ...asked.target, contextSize: 1024 }, "known")).toEqual({
    tokens: 1024,
    isAssumed: false,
  });
  expect(asks).toBe(0);
  const both = await Promise.all([sizes.lookUp(asked.target, "known"), sizes.lookUp(asked.target, "known")]);
  expect(both).toEqual(Array.from({ length: 2 }, () => ({ tokens: 4096, isAssumed: false })));
  expect(await sizes.lookUp(asked.target, "unknown")).toEqual({ tokens: 8192, isAssumed: true });
  expect(await sizes.lookUp(asked.target, "unknown")).toEqual({ tokens: 8192, isAssumed: true });
  expect(asks).toBe(2);
  const failing = new ContextSizes({ readContextSize: () => Promise.reject(new Error("no")) });
  expect(await failing.lookUp(asked.target, "m")).toEqual({ tokens: 8192, isAssumed: true });
});
