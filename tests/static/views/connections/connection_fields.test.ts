import type { Connection } from "../../../../static/src/api/types.ts";
import { expect, test } from "vitest";
import { isKeyExposed, isKeyLeftBehind } from "../../../../static/src/components/forms/api_key_state.ts";
import {
  findProblems,
  toConnectionFields,
  toConnectionInput,
} from "../../../../static/src/views/connections/connection_fields.ts";

const saved: Connection = {
  id: "x",
  name: "Mine",
  kind: "openai",
  base_url: "https://llm.example:8443/v1",
  model: "m",
  context_size: 4096,
  has_key: true,
  active: false,
  created_at: "2026-01-02T03:04:05Z",
  updated_at: "2026-01-02T03:04:05Z",
};

test("an unchanged form sends the connection without a key", () => {
  const input = toConnectionInput(toConnectionFields(saved), saved.id);
  expect(input).toEqual({
    id: "x",
    name: "Mine",
    kind: "openai",
    base_url: "https://llm.example:8443/v1",
    model: "m",
    context_size: 4096,
  });
});

test("emptied fields clear stored values, and an empty name becomes the host", () => {
  const fields = { ...toConnectionFields(saved), name: " ", model: "", contextSize: "" };
  expect(toConnectionInput(fields, "x")).toMatchObject({ name: "llm.example:8443", model: null, context_size: null });
});

test.each([
  ["https://llm.example:8443/other", false],
  ["https://llm.example/v1", true],
  ["http://llm.example:8443/v1", true],
  ["https://other.example:8443/v1", true],
])("the form shows whether the stored key is sent to %s", { tags: ["U01"] }, (address, isLeft) => {
  expect(isKeyLeftBehind({ stored: saved, address, typed: "" })).toBe(isLeft);
  expect(isKeyLeftBehind({ stored: saved, address, typed: "new" })).toBe(false);
});

test.each([
  ["http://llm.example/v1", true],
  ["http://192.168.1.20:8080", true],
  ["https://llm.example/v1", false],
  ["http://localhost:8080", false],
  ["http://127.0.0.1:8080", false],
  ["http://[::1]:8080", false],
  ["llm.example", false],
])("the form shows whether others could read a key for %s", (address, isExposed) => {
  expect(isKeyExposed({ stored: undefined, address, typed: "k" })).toBe(isExposed);
  expect(isKeyExposed({ stored: undefined, address, typed: "" })).toBe(false);
  expect(isKeyExposed({ stored: { base_url: address, has_key: true }, address, typed: "" })).toBe(isExposed);
  // A key that isn't sent can't be read by others.
  expect(isKeyExposed({ stored: { ...saved, base_url: "http://elsewhere" }, address, typed: "" })).toBe(false);
});

test.each([["", true], ["llm.example", true], ["ftp://x", true], ["javascript:alert(1)", true], [
  "http://127.0.0.1:1",
  false,
]])(
  "validates the address %s before sending",
  (baseUrl, isUrlBad) => expect(findProblems({ ...toConnectionFields(undefined), baseUrl }).isUrlBad).toBe(isUrlBad),
);

test.each([["", false], ["8192", false], ["0", true], ["8k", true], ["-1", true], ["1.5", true]])(
  "validates the context size %s before sending",
  (contextSize, isContextBad) => {
    expect(findProblems({ ...toConnectionFields(saved), contextSize }).isContextBad).toBe(isContextBad);
  },
);
