import { expect, test } from "vitest";
import { getServerRoot, listEndpointPrefixes, normalizeBaseUrl, parseOrigin } from "../../../services/http/base_url.ts";

test.each([
  ["http://127.0.0.1:8080", "http://127.0.0.1:8080"],
  ["  http://127.0.0.1:8080/  ", "http://127.0.0.1:8080"],
  ["127.0.0.1:8080", "http://127.0.0.1:8080"],
  ["localhost:1234/v1", "http://localhost:1234/v1"],
  ["[::1]:8080/v1", "http://[::1]:8080/v1"],
  ["http://h:1/v1/", "http://h:1/v1"],
  ["http://h:1/v1///", "http://h:1/v1"],
  ["http://h:1/v1/chat/completions", "http://h:1/v1"],
  ["http://h:1/v1/chat/completions/", "http://h:1/v1"],
  ["http://h:1/v1/completions", "http://h:1/v1"],
  ["http://h:1/v1/models", "http://h:1/v1"],
  ["https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"],
  ["https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"],
  ["HTTPS://Example.ORG:443/Proxy/llm/", "https://example.org/Proxy/llm"],
  ["http://h:80/v1?x=1#y", "http://h/v1"],
])("%j becomes %j", (text, url) => {
  expect(normalizeBaseUrl(text)).toBe(url);
});

test.each(["", "   ", "ftp://h/v1", "http://", "http://user:pass@h/v1", "file:///etc/passwd"])(
  "%j is refused",
  (text) => {
    expect(() => normalizeBaseUrl(text)).toThrow(expect.objectContaining({ code: "invalid_request" }));
  },
);

test.each(["http://169.254.169.254", "169.254.1.1:80/v1", "http://2852039166/", "http://[fe80::1]/v1"])(
  "%j is refused when it is entered",
  { tags: ["E14"] },
  (text) => {
    expect(() => normalizeBaseUrl(text)).toThrow(expect.objectContaining({ code: "address_not_allowed" }));
  },
);

test("a base with a version says where its endpoints lie, any other is tried with /v1 first", () => {
  expect(listEndpointPrefixes("http://h/v1")).toEqual(["http://h/v1"]);
  expect(listEndpointPrefixes("http://h/api/v4")).toEqual(["http://h/api/v4"]);
  expect(listEndpointPrefixes("http://h")).toEqual(["http://h/v1", "http://h"]);
  expect(listEndpointPrefixes("http://h/v1beta")).toEqual(["http://h/v1beta/v1", "http://h/v1beta"]);
});

test("the root of a server's own paths has no version, the origin of a key no path", () => {
  expect(getServerRoot("http://h:1/v1")).toBe("http://h:1");
  expect(getServerRoot("http://h:1/p")).toBe("http://h:1/p");
  expect(parseOrigin("https://h:8443/api/v1")).toBe("https://h:8443");
});
