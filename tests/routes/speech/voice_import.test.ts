import { expect, test } from "vitest";
import { wavFile } from "../../helpers/fakes/fake_speech.ts";
import { openFakeYtDlp } from "../../helpers/fakes/fake_yt_dlp.ts";
import { PUBLIC } from "../../helpers/network/loopback_guard.ts";
import { isGone } from "../../helpers/processes/processes.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

/** Starts an external site. `PUBLIC` is a loopback address that the guard treats as public. */
function openSite(answer: (path: string) => Response, hostname = PUBLIC) {
  const asked: string[] = [];
  const server = Deno.serve({ port: 0, hostname, onListen() {} }, (request) => {
    const { pathname } = new URL(request.url);
    asked.push(pathname);
    return answer(pathname);
  });
  return {
    asked,
    url: (path: string) => `http://${hostname}:${server.addr.port}${path}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function openApp(ytDlpPath: string | null = null): Promise<TestApp> {
  return openTestApp({ config: { guardAllow: [`${PUBLIC}/32`], ytDlpPath } });
}

async function importFrom(app: TestApp, url: string, more: Record<string, unknown> = {}) {
  const response = await app.post("/api/voices/from-url", { url, name: "Guest", ...more });
  const body = await response.json();
  return { status: response.status, body, code: body.error?.code, message: body.error?.message, response };
}

async function expectNothingLeft(app: TestApp): Promise<void> {
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/imports`))).toEqual([]);
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/voices`))).toEqual([]);
}

const page = () =>
  new Response("<html>A page with a player</html>".repeat(10), { headers: { "content-type": "text/html" } });

test("a job fetches an audio file at the URL through the guard and stores it", async () => {
  await using site = openSite(() => new Response(wavFile(2), { headers: { "content-type": "text/plain" } }));
  await using app = await openApp();
  const { status, body, response } = await importFrom(app, site.url("/voice.bin"));
  expect([status, body.format, body.duration_s, body.name]).toEqual([201, "wav", 2, "Guest"]);
  const job = await (await app.get(`/api/jobs/${response.headers.get("x-parlor-job-id")}`)).json();
  expect(job).toMatchObject({ kind: "voice_import", state: "done", title: "Guest" });
  expect((await app.get(`/api/voices/${body.id}/audio`)).status).toBe(200);
});

test("a page is passed to the downloader as one argument after --, with the guard as its only network access", async () => {
  await using tool = await openFakeYtDlp();
  await using site = openSite(page);
  await using app = await openApp(tool.path);
  const { status, body } = await importFrom(app, site.url("/good?v=$(id)"), { start_s: 5, end_s: 9 });
  expect([status, body.format, body.duration_s]).toEqual([201, "wav", 2]);
  const { args } = await tool.lastCall();
  expect(args.slice(-2)).toEqual(["--", site.url("/good?v=$(id)")]);
  expect(args).toEqual(expect.arrayContaining(["--ignore-config", "--no-plugin-dirs", "--no-exec", "--no-playlist"]));
  expect(args.find((arg) => arg.startsWith("ExtractAudio:"))).toContain("-ss 5 -t 4");
  expect(args[args.indexOf("--proxy") + 1]).toBe((await app.services.guard()).proxyUrl);
  // With a section, the downloader requests the page, not Parlor.
  expect(site.asked).toEqual([]);
});

test("the job shows how much of a page's recording has been downloaded, as reported by the downloader", async () => {
  await using tool = await openFakeYtDlp();
  await using site = openSite(page);
  await using app = await openApp(tool.path);
  const importing = importFrom(app, site.url("/slow"), { start_s: 0, end_s: 5 });
  await expect.poll(async () => (await (await app.get("/api/jobs")).json())[0]?.progress)
    .toMatchObject({ done: 2000, total: 4000, unit: "bytes" });
  await tool.goOn();
  const { status, body, response } = await importing;
  expect([status, body.format]).toEqual([201, "wav"]);
  const job = await (await app.get(`/api/jobs/${response.headers.get("x-parlor-job-id")}`)).json();
  expect(job).toMatchObject({ state: "done", progress: { done: 4000, total: 4000 } });
});

test.each([
  "-o/etc/passwd",
  "http://a.test/x y",
  "http://a.test/a\nb",
  "ytsearch:cats",
  "file:///etc/passwd",
  "ftp://a.test/x",
  "http://user:pass@a.test/",
  `http://a.test/${"x".repeat(3000)}`,
  "data:audio/wav;base64,AAAA",
])("rejects a URL that isn't plain http or https before anything runs: %j", { tags: ["X01"] }, async (url) => {
  await using tool = await openFakeYtDlp();
  await using app = await openApp(tool.path);
  const { status, code } = await importFrom(app, url);
  expect([status, code]).toEqual([400, "invalid_request"]);
  await expect(tool.lastCall()).rejects.toThrow();
  expect((await (await app.get("/api/jobs")).json()).filter((job: { state: string }) => job.state === "done")).toEqual(
    [],
  );
});

test("removes the fragment, in which the downloader would read options", { tags: ["X01"] }, async () => {
  await using tool = await openFakeYtDlp();
  await using site = openSite(page);
  await using app = await openApp(tool.path);
  await importFrom(app, site.url("/good#__youtubedl_smuggle=%7B%22x%22%3A1%7D"));
  expect((await tool.lastCall()).args.at(-1)).toBe(site.url("/good"));
});

test(
  "the downloader gets an empty home and no environment other than PATH",
  { tags: ["X02"] },
  async () => {
    Deno.env.set("SECRET_OF_THE_OWNER", "s3cret");
    Deno.env.set("NO_PROXY", "*");
    try {
      await using tool = await openFakeYtDlp();
      await using site = openSite(page);
      await using app = await openApp(tool.path);
      await importFrom(app, site.url("/good"));
      const { env, cwd } = await tool.lastCall();
      const { PWD: _, SHLVL: __, _: ___, OLDPWD: ____, ...own } = env;
      expect(Object.keys(own).sort()).toEqual([
        ...["ALL_PROXY", "HOME", "HTTPS_PROXY", "HTTP_PROXY", "LANG", "NO_PROXY", "PATH", "PYTHONDONTWRITEBYTECODE"],
        ...["TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "all_proxy", "http_proxy", "https_proxy", "no_proxy"],
      ]);
      expect([own.HOME, own.NO_PROXY, own.no_proxy]).toEqual([cwd, "", ""]);
      expect(cwd.startsWith(`${app.dataDir}/imports/`)).toBe(true);
    } finally {
      Deno.env.delete("SECRET_OF_THE_OWNER");
      Deno.env.delete("NO_PROXY");
    }
  },
);

test(
  "rejects private targets: at the URL itself, after a redirect, and through the downloader's proxy",
  { tags: ["X03"] },
  async () => {
    await using inner = openSite(() => new Response(wavFile(1)), "127.0.0.1");
    await using site = openSite(() => Response.redirect(inner.url("/secret.wav"), 302));
    await using app = await openApp();
    expect((await importFrom(app, inner.url("/secret.wav"))).code).toMatch(/address_not_allowed|upstream_error/);
    expect((await importFrom(app, site.url("/redirect.wav"))).code).toMatch(/address_not_allowed|upstream_error/);
    const { proxyUrl } = await app.services.guard();
    const { username, password, host } = new URL(proxyUrl);
    using client = Deno.createHttpClient({ proxy: { url: `http://${host}`, basicAuth: { username, password } } });
    const answer = await fetch(inner.url("/x"), { client });
    await answer.body?.cancel();
    expect([403, 502]).toContain(answer.status);
    expect(inner.asked).toEqual([]);
    await expectNothingLeft(app);
  },
);

test.each([
  ["a file of another place", "/elsewhere", "unprocessable"],
  ["a link", "/link", "unprocessable"],
  ["something that is no audio", "/notaudio", "unprocessable"],
  ["two files", "/two", "unprocessable"],
  ["a playlist of 500", "/playlist", "unprocessable"],
  ["a file for the desktop to run", "/desktop", "unprocessable"],
  ["nothing, since it was filtered", "/filtered", "unprocessable"],
  ["a refusal", "/unsupported", "unprocessable"],
  ["a flood of words", "/flood", "unprocessable"],
  ["a full disk", "/big", "unprocessable"],
])("%s is a clear failure that leaves nothing behind", { tags: ["X04", "X05"] }, async (_, path, expected) => {
  await using tool = await openFakeYtDlp();
  await using site = openSite(page);
  await using app = await openApp(tool.path);
  const { status, code, message } = await importFrom(app, site.url(path));
  expect([status, code]).toEqual([422, expected]);
  expect(message).not.toContain("secret-path");
  expect(message).not.toContain(app.dataDir);
  await expectNothingLeft(app);
});

test("a downloader that is missing or too old to be safe gets a clear 503", { tags: ["X05"] }, async () => {
  await using site = openSite(page);
  await using missing = await openApp("/nowhere/yt-dlp");
  expect(await importFrom(missing, site.url("/good"))).toMatchObject({ status: 503, code: "not_available" });
  await using old = await openFakeYtDlp("2023.03.04");
  await using app = await openApp(old.path);
  const { status, message } = await importFrom(app, site.url("/good"));
  expect(status).toBe(503);
  expect(message).toContain("2023.03.04");
  await expectNothingLeft(app);
});

test(
  "canceling ends the whole process group of a downloader that ignores SIGTERM",
  { tags: ["X05"] },
  async () => {
    await using tool = await openFakeYtDlp();
    await using site = openSite(page);
    await using app = await openApp(tool.path);
    const asked = importFrom(app, site.url("/hang"));
    while ((await tool.children()).length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    const [job] = await (await app.get("/api/jobs")).json();
    expect(job.state).toBe("running");
    expect((await app.post(`/api/jobs/${job.id}/cancel`, {})).status).toBe(200);
    expect(await asked).toMatchObject({ status: 409, code: "conflict" });
    // Only the system waits for them, and ends them some time later.
    for (const pid of await tool.children()) await expect.poll(() => isGone(pid)).toBe(true);
    await expectNothingLeft(app);
  },
);

test("rejects a section that ends before it starts", async () => {
  await using app = await openApp();
  const { status, body } = await importFrom(app, "http://a.test/x", { start_s: 9, end_s: 9 });
  expect([status, body.error.issues[0].path]).toEqual([400, "end_s"]);
});

test("the remains of an import by a killed process are deleted at the next start", async () => {
  await using app = await openApp();
  await Deno.mkdir(`${app.dataDir}/imports/import-abc`);
  await Deno.writeTextFile(`${app.dataDir}/imports/import-abc/sample.wav.part`, "x");
  await app.restart();
  const left = () => Array.fromAsync(Deno.readDir(`${app.dataDir}/imports`));
  await expect.poll(left).toEqual([]);
});

test("a sample without a name is named after the end of its URL", async () => {
  await using site = openSite(() => new Response(wavFile(2)));
  await using app = await openApp();
  for (
    const [path, name] of [["/a/Old%20man.wav?x=1", "Old man"], ["/%ff.wav", "%ff"], ["/", new URL(site.url("/")).host]]
  ) {
    const response = await app.post("/api/voices/from-url", { url: site.url(path!) });
    expect([response.status, (await response.json()).name]).toEqual([201, name]);
  }
  expect((await app.post("/api/voices/from-url", { url: "no address" })).status).toBe(400);
});
