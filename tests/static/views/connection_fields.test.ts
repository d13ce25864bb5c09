import { expect, test } from "vitest";
import type { Connection } from "../../../static/src/api/types.ts";
import {
  fieldsOf,
  findProblems,
  inputOf,
  isKeyLeftBehind,
} from "../../../static/src/views/settings/connection_fields.ts";

const saved: Connection = {
  id: "x",
  name: "Mine",
  kind: "openai",
  base_url: "https://llm.example:8443/v1",
  model: "m",
  context_size: 4096,
  has_key: true,
  active: false,
};

test("a form that was not touched sends the connection back without a key", () => {
  const input = inputOf(fieldsOf(saved), saved.id);
  expect(input).toEqual({
    id: "x",
    name: "Mine",
    kind: "openai",
    base_url: "https://llm.example:8443/v1",
    model: "m",
    context_size: 4096,
  });
});

test("emptied fields clear what was stored, and a name left empty is the host", () => {
  const fields = { ...fieldsOf(saved), name: " ", model: "", contextSize: "" };
  expect(inputOf(fields, "x")).toMatchObject({ name: "llm.example:8443", model: null, context_size: null });
});

test.each([
  ["https://llm.example:8443/other", false],
  ["https://llm.example/v1", true],
  ["http://llm.example:8443/v1", true],
  ["https://other.example:8443/v1", true],
])("U01 the form says whether the stored key goes along to %s", (baseUrl, isLeft) => {
  expect(isKeyLeftBehind({ ...fieldsOf(saved), baseUrl }, saved)).toBe(isLeft);
  expect(isKeyLeftBehind({ ...fieldsOf(saved), baseUrl, apiKey: "new" }, saved)).toBe(false);
});

test.each([["", true], ["llm.example", true], ["ftp://x", true], ["javascript:alert(1)", true], [
  "http://127.0.0.1:1",
  false,
]])(
  "the address %s is judged before it is sent",
  (baseUrl, isUrlBad) => expect(findProblems({ ...fieldsOf(undefined), baseUrl }).isUrlBad).toBe(isUrlBad),
);

test.each([["", false], ["8192", false], ["0", true], ["8k", true], ["-1", true], ["1.5", true]])(
  "the context size %s is judged before it is sent",
  (contextSize, isContextBad) => {
    expect(findProblems({ ...fieldsOf(saved), contextSize }).isContextBad).toBe(isContextBad);
  },
);
