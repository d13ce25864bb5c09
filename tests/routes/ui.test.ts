import { afterAll, beforeAll, expect, test } from "vitest";
import { conditionalGet } from "../../middleware/conditional_get.ts";
import { PAGE_POLICY, uiRoutes } from "../../routes/ui.ts";
import { createErrorResponse } from "../../routes/errors.ts";
import { createRouter } from "../../routes/http/router.ts";

let folder: string;
const app = createRouter();

beforeAll(async () => {
  folder = await Deno.makeTempDir({ prefix: "parlor-dist-" });
  await Deno.mkdir(`${folder}/assets`);
  await Deno.writeTextFile(`${folder}/index.html`, "<!doctype html>page");
  await Deno.writeTextFile(`${folder}/assets/app-1.js`, "plain script");
  await Deno.writeTextFile(`${folder}/assets/app-1.js.br`, "br copy");
  await Deno.writeTextFile(`${folder}/assets/app-1.js.gz`, "gzip copy");
  await Deno.writeTextFile(`${folder}/secret.js`, "not an asset");
  app.use(conditionalGet());
  app.route("/", uiRoutes(folder));
  app.notFound((c) => c.text("nothing", 404));
  app.onError((error, c) => createErrorResponse(error, c));
});

afterAll(() => Deno.remove(folder, { recursive: true }));

const get = (path: string, headers: Record<string, string> = {}) => app.request(path, { headers });

test.each(["/", "/new", "/c/some-id", "/settings/connections/new", "/apiary"])(
  "the address %s returns the page with its policy, revalidated each time",
  { tags: ["W04"] },
  async (path) => {
    const answer = await get(path);
    expect([answer.status, await answer.text()]).toEqual([200, "<!doctype html>page"]);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("cache-control")).toBe("no-cache");
    expect(answer.headers.get("content-security-policy")).toBe(PAGE_POLICY);
  },
);

test("the policy allows nothing inline, no eval, no plug-in and no other host", { tags: ["W04"] }, () => {
  expect(PAGE_POLICY).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
      "connect-src 'self'; font-src 'self'; manifest-src 'self'; worker-src 'self'; frame-src 'self'; frame-ancestors 'none'; " +
      "base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types parlor",
  );
});

test.each(["/api", "/api/", "/api/unknown", "/favicon.ico", "/c/x.txt", "/secret.js", "/index.html"])(
  "responds to %s without the page",
  async (path) => expect((await get(path)).status).toBe(404),
);

test.each([
  "/assets/app-2.js",
  "/assets/app-1.js.br",
  "/assets/..%2findex.html",
  "/assets/%2e%2e/secret.js",
  "/assets/.js",
])(
  "only complete assets are served under %s",
  async (path) => expect((await get(path)).status).toBe(404),
);

test.each([["br, gzip", "br", "br copy"], ["gzip", "gzip", "gzip copy"], ["br;q=0, gzip", "gzip", "gzip copy"]])(
  "a browser that accepts %s gets the smallest copy it can read, cached forever",
  async (accepted, encoding, body) => {
    const answer = await get("/assets/app-1.js", { "accept-encoding": accepted });
    expect([answer.headers.get("content-encoding"), await answer.text()]).toEqual([encoding, body]);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(answer.headers.get("vary")).toContain("Accept-Encoding");
  },
);

test("an asset without a matching copy is sent uncompressed", async () => {
  const answer = await get("/assets/app-1.js", { "accept-encoding": "zstd" });
  expect([answer.headers.get("content-encoding"), await answer.text()]).toEqual([null, "plain script"]);
});

test("an unchanged page isn't sent again", async () => {
  const tag = (await get("/")).headers.get("etag")!;
  const answer = await get("/", { "if-none-match": `"other", W/${tag}` });
  expect([answer.status, await answer.text()]).toEqual([304, ""]);
  await Deno.writeTextFile(`${folder}/index.html`, "<!doctype html>new page");
  expect((await get("/", { "if-none-match": tag })).status).toBe(200);
  await Deno.writeTextFile(`${folder}/index.html`, "<!doctype html>page");
});

test("a page that hasn't been built gets an error that says how to build it", async () => {
  const empty = createRouter();
  empty.route("/", uiRoutes(`${folder}/nowhere`));
  empty.onError((error, c) => createErrorResponse(error, c));
  const answer = await empty.request("/");
  expect(answer.status).toBe(503);
  expect((await answer.json()).error).toMatchObject({
    code: "not_available",
    message: expect.stringContaining("deno task ui"),
  });
});
