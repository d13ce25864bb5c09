import { expect, test } from "vitest";
import { createClient } from "../../../static/src/api/client.ts";
import { guardFetch, ProxySignInError } from "../../../static/src/api/proxy_sign_in.ts";

/** A guarded fetch with these responses, in order. */
function guard(...responses: Response[]) {
  const seen: { path: string; redirect: string | undefined }[] = [];
  const isSignedOut: boolean[] = [];
  const guarded = guardFetch((path, init) => {
    seen.push({ path: String(path), redirect: init?.redirect });
    return Promise.resolve(responses.shift()!);
  }, (now) => isSignedOut.push(now));
  return { guarded, seen, isSignedOut };
}

function respond(status: number, contentType: string, headers: Record<string, string> = {}): Response {
  return new Response("<h1>Sign in</h1>", { status, headers: { "content-type": contentType, ...headers } });
}

/** What a browser shows of a redirect that it doesn't follow. */
function redirect(): Response {
  return Object.defineProperty(Response.error(), "type", { value: "opaqueredirect" });
}

test.each([
  ["a redirect", () => redirect()],
  ["a page in place of data", () => respond(200, "text/html; charset=utf-8")],
  ["a refusal in plain text", () => respond(401, "text/plain")],
])("takes %s for the sign-in of a proxy, not for success of the change", async (_, response) => {
  const { guarded, isSignedOut, seen } = guard(response());
  const client = createClient(guarded, "http://localhost:8787");
  await expect(client.send("PUT", "/api/connections")).rejects.toMatchObject({
    status: 0,
    code: "proxy_sign_in",
    message: expect.stringContaining("proxy"),
    isTransient: true,
  });
  expect(isSignedOut).toEqual([true]);
  expect(seen).toEqual([{ path: "/api/connections", redirect: "manual" }]);
});

test.each([
  ["data", () => respond(200, "application/json")],
  ["a page that the server itself sent", () => respond(200, "text/html", { "x-request-id": "r1" })],
  ["a refusal by the server", () => respond(401, "application/json")],
  ["the error page of a proxy without its server", () => respond(502, "text/html")],
])("gives the page %s", async (_, response) => {
  const { guarded, isSignedOut } = guard(response());
  const expected = response().status;
  expect((await guarded("/api/connections")).status).toBe(expected);
  expect(isSignedOut).toEqual([false]);
});

test("asks whether a forbidding page is about this request alone or about all", async () => {
  const filtered = guard(respond(403, "text/html"), respond(200, "application/json"));
  expect((await filtered.guarded("/api/chat", { method: "POST" })).status).toBe(403);
  expect(filtered.seen.map(({ path }) => path)).toEqual(["/api/chat", "/api/auth/status"]);
  const signedOut = guard(respond(403, "text/html"), respond(403, "text/html"));
  await expect(signedOut.guarded("/api/chat", { method: "POST" })).rejects.toBeInstanceOf(ProxySignInError);
});
