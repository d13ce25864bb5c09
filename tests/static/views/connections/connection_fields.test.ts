import type { Connection } from "../../../../static/src/api/types.ts";
import { expect, test } from "vitest";
import { isKeyExposed, isKeyLeftBehind } from "../../../../static/src/components/forms/api_key_state.ts";
import {
  areHeadersLeftBehind,
  findProblems,
  isValid,
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
  header_names: [],
  server: {},
  refused: [],
  active: false,
  created_at: "2026-01-02T03:04:05Z",
  updated_at: "2026-01-02T03:04:05Z",
};

test("an unchanged form sends the connection without a key", () => {
  const input = toConnectionInput(toConnectionFields(saved), saved);
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
  expect(toConnectionInput(fields, saved)).toMatchObject({ name: "llm.example:8443", model: null, context_size: null });
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
  ["192.168.1.20:8080", true],
  ["127.0.0.1:8080", false],
])("the form shows whether others could read a key for %s", (address, isExposed) => {
  expect(isKeyExposed({ stored: undefined, address, typed: "k" })).toBe(isExposed);
  expect(isKeyExposed({ stored: undefined, address, typed: "" })).toBe(false);
  expect(isKeyExposed({ stored: { base_url: address, has_key: true }, address, typed: "" })).toBe(isExposed);
  // A key that isn't sent can't be read by others.
  expect(isKeyExposed({ stored: { ...saved, base_url: "http://elsewhere" }, address, typed: "" })).toBe(false);
});

test.each([["", true], ["llm.example", false], ["192.168.1.5:8080", false], ["a b", true], ["ftp://x", true], [
  "javascript:alert(1)",
  true,
], [
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

const withHeaders: Connection = { ...saved, header_names: ["X-Title", "X-Old"], extra_body: { top_k: 1 } };

test("sends only changed headers: typed values, and null for those removed from the form", () => {
  const fields = toConnectionFields(withHeaders);
  expect(toConnectionInput(fields, withHeaders).headers).toBeUndefined();
  const [title] = fields.headers;
  const added = { name: " X-New ", value: " v ", isStored: false };
  expect(toConnectionInput({ ...fields, headers: [title!, added] }, withHeaders).headers)
    .toEqual({ "X-Old": null, "X-New": "v" });
});

test("stored header values have to be entered again for another origin", () => {
  const moved = { ...toConnectionFields(withHeaders), baseUrl: "https://other.example/v1" };
  expect(areHeadersLeftBehind(moved, withHeaders)).toBe(true);
  expect([...findProblems(moved, withHeaders).headers]).toEqual([[0, "value"], [1, "value"]]);
  expect(findProblems(toConnectionFields(withHeaders), withHeaders).headers.size).toBe(0);
});

test.each([["X Y", "v", "name"], ["", "v", "name"], ["X-Y:", "v", "name"], ["X-Y", "", "value"], [
  "X-Y",
  "a\nb",
  "value",
]])(
  "refuses the header %j with the value %j before sending",
  (name, value, problem) => {
    const fields = { ...toConnectionFields(saved), headers: [{ name, value, isStored: false }] };
    expect(findProblems(fields, saved).headers.get(0)).toBe(problem);
  },
);

test.each([["", true], ['{"a": [1]}', true], ["{a: 1}", false], ["[1]", false], ["null", false], ["3", false]])(
  "checks the extra body %j before sending",
  (extraBody, isGood) => expect(isValid(findProblems({ ...toConnectionFields(saved), extraBody }))).toBe(isGood),
);

test("an emptied extra body is cleared, an unset server override goes back to the detected server", () => {
  const stored: Connection = { ...withHeaders, server: { detected: "vllm", override: "groq" } };
  expect(toConnectionInput({ ...toConnectionFields(stored), extraBody: " ", server: "" }, stored))
    .toMatchObject({ extra_body: null, server: { override: null } });
  expect(toConnectionInput(toConnectionFields(stored), stored).server).toBeUndefined();
});

test.each([["192.168.1.5:8080", "http://192.168.1.5:8080", "192.168.1.5:8080"], [
  "llm.example/v1",
  "https://llm.example/v1",
  "llm.example",
]])("an address without a scheme, %s, is saved as %s", (baseUrl, base_url, name) => {
  const fields = { ...toConnectionFields(undefined), baseUrl };
  expect(toConnectionInput(fields, undefined)).toMatchObject({ base_url, name });
});

test("saves Ollama at the root of its server", () => {
  const fields = { ...toConnectionFields(saved), kind: "ollama" as const, baseUrl: "http://127.0.0.1:11434/v1/" };
  expect(toConnectionInput(fields, saved).base_url).toBe("http://127.0.0.1:11434");
});

test("whether the provider may store replies is sent when it was changed", () => {
  const fields = toConnectionFields(saved);
  expect(fields.background).toBe(false);
  expect(toConnectionInput({ ...fields, background: true }, saved)).toMatchObject({ background: true });
  const allowed = { ...saved, background: true };
  expect(toConnectionInput(toConnectionFields(allowed), allowed)).not.toHaveProperty("background");
  expect(toConnectionInput(fields, allowed)).toMatchObject({ background: false });
});
