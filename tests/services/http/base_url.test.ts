import { expect, test } from "vitest";
import {
  getServerRoot,
  listEndpointPrefixes,
  normalizeBaseUrl,
  parseOrigin,
  parseOwnerUrl,
  resolveOwnerUrl,
} from "../../../services/http/base_url.ts";
import { rejectionOf } from "../../helpers/app/rejection.ts";

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
  ["192.168.1.5:8080", "http://192.168.1.5:8080"],
  ["8.8.8.8:8080/v1", "http://8.8.8.8:8080/v1"],
  ["desk:8080", "http://desk:8080"],
  ["desk.local:8080/v1", "http://desk.local:8080/v1"],
  ["host.docker.internal:11434", "http://host.docker.internal:11434"],
  ["nas.fritz.box", "http://nas.fritz.box"],
  ["desk.fox-owl.ts.net:8080", "http://desk.fox-owl.ts.net:8080"],
  ["desk.fox-owl.ts.net", "https://desk.fox-owl.ts.net"],
  ["api.example.com/v1/", "https://api.example.com/v1"],
  ["API.Example.com:8443", "https://api.example.com:8443"],
  ["example.com:80/v1", "http://example.com/v1"],
  ["xn--bcher-kva.example", "https://xn--bcher-kva.example"],
])("%j becomes %j", (text, url) => {
  expect(normalizeBaseUrl(text)).toBe(url);
});

test.each(["", "   ", "ftp://h/v1", "http://", "http://user:pass@h/v1", "file:///etc/passwd"])(
  "rejects %j",
  (text) => {
    expect(() => normalizeBaseUrl(text)).toThrow(expect.objectContaining({ code: "invalid_request" }));
  },
);

test.each(["http://169.254.169.254", "169.254.1.1:80/v1", "http://2852039166/", "http://[fe80::1]/v1"])(
  "rejects %j when it is entered",
  { tags: ["E14"] },
  (text) => {
    expect(() => normalizeBaseUrl(text)).toThrow(expect.objectContaining({ code: "address_not_allowed" }));
  },
);

test("a base URL with a version determines its endpoints; any other is tried with /v1 first", () => {
  expect(listEndpointPrefixes("http://h/v1")).toEqual(["http://h/v1"]);
  expect(listEndpointPrefixes("http://h/api/v4")).toEqual(["http://h/api/v4"]);
  expect(listEndpointPrefixes("http://h")).toEqual(["http://h/v1", "http://h"]);
  expect(listEndpointPrefixes("http://h/v1beta")).toEqual(["http://h/v1beta", "http://h/v1beta/v1"]);
  expect(listEndpointPrefixes("http://h/p")).toEqual(["http://h/p", "http://h/p/v1"]);
  expect(listEndpointPrefixes("http://h/inference")).toEqual(["http://h/inference", "http://h/v1", "http://h"]);
});

test.each([
  ["https://h/models", "https://h/models"],
  ["https://h/inference/", "https://h/inference"],
  ["https://h/v1/models", "https://h/v1"],
  ["https://h/models/chat/completions?api-version=1", "https://h/models?api-version=1"],
  ["https://h/inference/chat/completions", "https://h/inference"],
])("a tail of %s that may be a prefix is preserved, also when it's saved again", (text, url) => {
  const options = { keepsQuery: true, keepsPrefix: true };
  expect(normalizeBaseUrl(text, options)).toBe(url);
  expect(normalizeBaseUrl(url, options)).toBe(url);
});

test("the root of a server's own paths has no version, and the origin of a key no path", () => {
  expect(getServerRoot("http://h:1/v1")).toBe("http://h:1");
  expect(getServerRoot("http://h:1/p")).toBe("http://h:1/p");
  expect(getServerRoot("http://h:1/models")).toBe("http://h:1");
  expect(parseOrigin("https://h:8443/api/v1")).toBe("https://h:8443");
});

test.each([
  "http://127.0.0.1:8080/v1",
  "http://localhost:11434",
  "http://[::1]:5001",
  "http://192.168.1.20:8080",
  "http://10.0.0.5",
  "http://100.101.102.103:8080",
  "http://[fd7a:115c:a1e0::1]:8080",
  "http://desk.fox-owl.ts.net:8080",
  "https://api.openai.com/v1",
])("the owner may use %s", { tags: ["E14"] }, async (text) => {
  const url = parseOwnerUrl(text);
  expect(url.href.startsWith(text)).toBe(true);
  await resolveOwnerUrl(url, { resolve: () => Promise.resolve(["192.168.1.20", "fd7a::1", "127.0.0.1"]) });
});

const FORBIDDEN = [
  "169.254.169.254",
  "169.254.0.1",
  "2852039166",
  "0xa9fea9fe",
  "0251.0376.0251.0376",
  "169.254.43518",
  "１６９.254.169.254",
  "169.254.169.254.",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "[fe80::1]",
  "[FEBF::1]",
  "[::ffff:169.254.169.254]",
  "[::ffff:a9fe:a9fe]",
  "[::169.254.169.254]",
  "[64:ff9b::a9fe:a9fe]",
  "[64:ff9b:1::a9fe:a9fe]",
  "[2002:a9fe:a9fe::]",
  "[fd00:ec2::254]",
  "[fd20:ce::254]",
  "metadata.google.internal",
  "METADATA.google.internal.",
];

test.each(FORBIDDEN)("even the owner may not use %s", { tags: ["E14"] }, async (host) => {
  expect(rejectionOf(() => parseOwnerUrl(`http://${host}/latest/meta-data/`))).toMatchObject({
    code: "address_not_allowed",
  });
  const url = new URL(`http://${host}/`);
  await expect(resolveOwnerUrl(url, { resolve: () => Promise.resolve(["8.8.8.8"]) })).rejects.toMatchObject({
    code: "address_not_allowed",
  });
});

test.each([
  [["169.254.169.254"]],
  [["192.168.1.2", "169.254.169.254"]],
  [["fe80::1"]],
  [["8.8.8.8", "::ffff:169.254.169.254"]],
])("rejects a name with the addresses %j", { tags: ["E14"] }, async (addresses) => {
  const url = parseOwnerUrl("http://innocent.example:8080/v1");
  await expect(resolveOwnerUrl(url, { resolve: () => Promise.resolve(addresses) })).rejects.toMatchObject({
    code: "address_not_allowed",
    message: `Can't use "http://innocent.example:8080": link-local and cloud metadata addresses aren't allowed`,
  });
});

test("an unknown name has no address", async () => {
  const resolve = () => Promise.reject(new Error("ENOTFOUND"));
  await expect(resolveOwnerUrl(new URL("http://nobody.example"), { resolve })).resolves.toEqual([]);
});

test("addresses and localhost need no lookup", async () => {
  const resolve = () => Promise.reject(new Error("nothing is looked up"));
  expect(await resolveOwnerUrl(new URL("http://localhost:8080"), { resolve })).toEqual(["127.0.0.1", "::1"]);
  expect(await resolveOwnerUrl(new URL("http://[fd7a::1]:8080"), { resolve })).toEqual(["fd7a::1"]);
});

test.each([
  ["ftp://desk/", "invalid_request"],
  ["file:///etc/passwd", "invalid_request"],
  ["javascript:alert(1)", "invalid_request"],
  ["desk:8080", "invalid_request"],
  ["", "invalid_request"],
  ["http://[fe80::1%25eth0]/", "invalid_request"],
  ["http://user:secret@desk:8080/", "invalid_request"],
  ["http://user@desk:8080/", "invalid_request"],
])("refuses %j as an endpoint address", (text, code) => {
  const error = rejectionOf(() => parseOwnerUrl(text));
  expect(error).toMatchObject({ code });
  expect(String(error)).not.toContain("secret");
});
