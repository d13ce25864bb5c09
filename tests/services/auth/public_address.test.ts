import { expect, test } from "vitest";
import { checkPublicAddress } from "../../../services/auth/public_address.ts";
import type { HttpClient } from "../../../services/http/http_client.ts";
import { UpstreamError } from "../../../services/http/upstream_error.ts";

const ADDRESS = "https://chat.example.org";

/** A client that responds by path and records its requests. */
function clientOf(answers: Record<string, () => Response>) {
  const asked: { url: string; headers?: Record<string, string> }[] = [];
  const client: Pick<HttpClient, "fetch"> = {
    fetch(_label, _target, { url, headers }) {
      asked.push({ url, headers });
      return Promise.resolve().then(() => answers[new URL(url).pathname]!());
    },
  };
  return { client: client as HttpClient, asked };
}

const status = (changes: object = {}) => () =>
  Response.json({ rp_id: "chat.example.org", origin: ADDRESS, paired: false, ...changes });
const refused = (message: string) => () =>
  Response.json({ error: { code: "host_not_allowed", message } }, { status: 403 });
const gated = () => Response.json({ error: { code: "unauthenticated", message: "" } }, { status: 401 });

test.each([
  ["ok", status(), gated],
  ["host_not_allowed", refused("here"), gated],
  ["host_not_allowed", status(), refused("there")],
  ["other_server", () => new Response("<!doctype html>"), gated],
  ["other_server", () => Response.json({ origin: ADDRESS }), gated],
  ["other_server", () => new Response("", { status: 302, headers: { location: "/login" } }), gated],
  ["proxy_headers", status({ origin: "http://chat.example.org" }), gated],
  ["proxy_headers", status({ hint: "untrusted_proxy" }), gated],
  ["host_changed", status({ origin: "https://parlor.internal" }), gated],
])("finds %s", async (result, statusAnswer, setupAnswer) => {
  const { client } = clientOf({ "/api/auth/status": statusAnswer, "/api/setup/status": setupAnswer });
  expect(await checkPublicAddress(`${ADDRESS}/some/page`, client)).toBe(result);
});

test.each(
  [
    ["unresolved", "unresolved"],
    ["certificate", "certificate"],
    ["refused", "unreachable"],
    ["protocol", "unreachable"],
    ["timeout", "unreachable"],
  ] as const,
)("a connection that fails with %s is %s", async (kind, result) => {
  const fail = () => {
    throw new UpstreamError(kind, "no connection");
  };
  const { client } = clientOf({ "/api/auth/status": fail });
  expect(await checkPublicAddress(ADDRESS, client)).toBe(result);
});

test("sends no credentials", async () => {
  const { client, asked } = clientOf({ "/api/auth/status": status(), "/api/setup/status": gated });
  await checkPublicAddress(ADDRESS, client);
  expect(asked.map(({ url }) => url)).toEqual([`${ADDRESS}/api/auth/status`, `${ADDRESS}/api/setup/status`]);
  expect(asked.map(({ headers }) => Object.keys(headers ?? {}))).toEqual([["accept"], ["accept"]]);
});

test.each(["http://chat.example.org", "https://localhost", "https://192.168.1.2", "https://[::1]", "chat.example.org"])(
  "refuses %s",
  async (address) => {
    await expect(checkPublicAddress(address)).rejects.toMatchObject({ code: "invalid_request" });
  },
);

test("refuses the address of cloud metadata", async () => {
  await expect(checkPublicAddress("https://metadata.google.internal")).rejects.toMatchObject({
    code: "address_not_allowed",
  });
});
