import { expect, test } from "vitest";
import { standingClock } from "../../../helpers/fakes/standing_clock.ts";
import { failureOf, openTestGuard, PRIVATE, PUBLIC } from "../../../helpers/network/loopback_guard.ts";
import {
  openHttpServer,
  openSilentListener,
  openStreamServer,
  send,
  sendText,
} from "../../../helpers/network/loopback_servers.ts";

const GENERIC =
  "the address is not allowed or does not answer. Addresses that aren't public are refused, unless guard_allow includes them";

/** A public server and a private listener on the same port number, so that only the address tells them apart. */
function openPair() {
  const server = openHttpServer((conn, head) => sendText(conn, `at ${/^\S+ (\S+)/.exec(head)?.[1]}`), {
    hostname: PUBLIC,
  });
  const secret = openSilentListener(PRIVATE, server.port);
  return {
    server,
    secret,
    port: server.port,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await secret[Symbol.asyncDispose]();
    },
  };
}

test("a response has status, headers, body and final URL", async () => {
  await using server = openHttpServer(
    (conn) => send(conn, "HTTP/1.1 404 Nope\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nno"),
    {
      hostname: PUBLIC,
    },
  );
  await using guard = await openTestGuard({});
  const response = await guard.fetch(`http://${PUBLIC}:${server.port}/x?y=1`, { headers: { "X-B": "2" } });
  expect([response.status, response.statusText]).toEqual([404, "Not Found"]); // the runtime uses its own reason phrases
  expect(response.url).toBe(`http://${PUBLIC}:${server.port}/x?y=1`);
  expect(response.headers.get("x-a")).toBe("1");
  expect(await response.text()).toBe("no");
  expect(server.requests[0]).toMatch(/^GET \/x\?y=1 HTTP\/1\.1\r\n[^]*x-b: 2\r\n/i);
});

test("HEAD and 204 have no body and leave nothing open", async () => {
  await using server = openHttpServer(
    (conn, head) =>
      send(conn, `HTTP/1.1 ${head.startsWith("HEAD") ? "200 OK\r\nContent-Length: 99" : "204 None"}\r\n\r\n`),
    { hostname: PUBLIC },
  );
  await using guard = await openTestGuard({});
  const head = await guard.fetch(`http://${PUBLIC}:${server.port}/`, { method: "HEAD", maxBytes: 10 });
  expect([head.status, head.body, head.headers.get("content-length")]).toEqual([200, null, "99"]);
  expect((await guard.fetch(`http://${PUBLIC}:${server.port}/`)).body).toBeNull();
});

test(
  "looks a name up once per call, and never connects to a private second answer",
  { tags: ["E01"] },
  async () => {
    await using pair = await openPair();
    let lookups = 0;
    await using guard = await openTestGuard({ "rebind.example": () => lookups++ === 0 ? [PUBLIC] : [PRIVATE] });
    const url = `http://rebind.example:${pair.port}/`;
    expect(await (await guard.fetch(url)).text()).toBe("at /");
    expect(lookups).toBe(1);
    expect(await failureOf(guard.fetch(url))).toMatchObject({ code: "upstream_error" });
    expect(pair.secret).toMatchObject({ connections: 0, received: "" });
  },
);

test("refuses mixed, empty and failing lookups without connecting", { tags: ["E02"] }, async () => {
  await using pair = await openPair();
  await using guard = await openTestGuard({
    "mixed.example": [PUBLIC, PRIVATE],
    "mixed6.example": [PUBLIC, "::1"],
    "empty.example": [],
    "failing.example": () => Promise.reject(new Error("SERVFAIL")),
    // What a lookup returns for a CNAME: the final addresses.
    "cname.example": [PRIVATE],
  });
  for (const name of ["mixed", "mixed6", "empty", "failing", "cname"]) {
    const failure = await failureOf(guard.fetch(`http://${name}.example:${pair.port}/`));
    expect(failure, name).toEqual({
      code: "upstream_error",
      message: `Can't fetch from "${name}.example:${pair.port}": ${GENERIC}`,
    });
  }
  expect(pair.server.requests).toEqual([]);
  expect(pair.secret.connections).toBe(0);
});

test.each([301, 302, 303, 307, 308])(
  "a redirect with %i is followed after checking its target",
  { tags: ["E03"] },
  async (status) => {
    await using pair = await openPair();
    const targets: Record<string, string> = {
      "/fine": "/end?x",
      "/literal": `http://${PRIVATE}:${pair.port}/`,
      "/name": `http://inner.example:${pair.port}/`,
      "/blocked": "http://localhost/",
      "/port": "http://8.8.8.8:22/",
      "/file": "file:///etc/passwd",
      "/data": "data:text/plain,hi",
      "/credentials": `http://u:p@${PUBLIC}:${pair.port}/end`,
      "/broken": "http://[",
    };
    await using server = openHttpServer((conn, head) => {
      const location = targets[/^\S+ (\S+)/.exec(head)?.[1] ?? ""];
      if (location === undefined) return sendText(conn, "end");
      return send(conn, `HTTP/1.1 ${status} Moved\r\nLocation: ${location}\r\nContent-Length: 5\r\n\r\nmoved`);
    }, { hostname: PUBLIC });
    await using guard = await openTestGuard({ "inner.example": [PRIVATE] });
    const base = `http://${PUBLIC}:${server.port}`;
    const response = await guard.fetch(`${base}/fine`);
    expect([response.url, await response.text()]).toEqual([`${base}/end?x`, "end"]);
    for (const path of Object.keys(targets).slice(1)) {
      const { message } = await failureOf(guard.fetch(`${base}${path}`));
      expect(message, path).toBe(`Can't fetch from "${PUBLIC}:${server.port}": ${GENERIC}`);
    }
    expect(pair.secret.connections).toBe(0);
    expect(pair.server.requests).toEqual([]);
  },
);

test("follows five redirects but not a sixth, and a loop ends", { tags: ["E03"] }, async () => {
  await using server = openHttpServer((conn, head) => {
    const left = Number(/^GET \/(\d+)/.exec(head)?.[1]);
    if (left === 0) return sendText(conn, "end");
    return send(conn, `HTTP/1.1 302 Found\r\nLocation: /${left === 99 ? 99 : left - 1}\r\n\r\n`);
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  const base = `http://${PUBLIC}:${server.port}`;
  expect(await (await guard.fetch(`${base}/5`)).text()).toBe("end");
  expect(await failureOf(guard.fetch(`${base}/6`))).toMatchObject({ message: expect.stringContaining(GENERIC) });
  server.requests.length = 0;
  expect(await failureOf(guard.fetch(`${base}/99`))).toMatchObject({ code: "upstream_error" });
  expect(server.requests).toHaveLength(6);
});

test("a redirect can be returned unchanged, or be an error", async () => {
  await using server = openHttpServer((conn) => send(conn, "HTTP/1.1 302 Found\r\nX-Repo: r\r\nLocation: /x\r\n\r\n"), {
    hostname: PUBLIC,
  });
  await using guard = await openTestGuard({});
  const response = await guard.fetch(`http://${PUBLIC}:${server.port}/`, { redirect: "manual" });
  expect([response.status, response.headers.get("location"), response.headers.get("x-repo")]).toEqual([302, "/x", "r"]);
  await response.body?.cancel();
  await expect(guard.fetch(`http://${PUBLIC}:${server.port}/`, { redirect: "error" })).rejects.toThrow(GENERIC);
});

test("secrets are sent only to their own origin, even after a redirect back", async () => {
  await using other = openHttpServer(
    (conn) => send(conn, `HTTP/1.1 302 Found\r\nLocation: http://${PUBLIC}:${server.port}/back\r\n\r\n`),
    { hostname: PUBLIC },
  );
  await using server = openHttpServer((conn, head) => {
    const path = /^\S+ (\S+)/.exec(head)?.[1];
    if (path === "/back") return sendText(conn, "end");
    const location = path === "/same" ? "/away" : `http://${PUBLIC}:${other.port}/`;
    return send(conn, `HTTP/1.1 302 Found\r\nLocation: ${location}\r\n\r\n`);
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  const headers = {
    Authorization: "Bearer s3cret",
    "x-api-key": "s3cret",
    Cookie: "a=s3cret",
    "X-Odd": "s3cret",
    Range: "bytes=5-",
  };
  await (await guard.fetch(`http://${PUBLIC}:${server.port}/same`, { headers })).text();
  const [same, away, back] = server.requests;
  for (const own of [same, away]) expect(own?.match(/s3cret/g)).toHaveLength(4);
  for (const foreign of [other.requests[0], back]) {
    expect(foreign).not.toContain("s3cret");
    expect(foreign).toMatch(/range: bytes=5-/i);
  }
});

test("a POST keeps its body at 307 and becomes a GET at 303; a stream isn't sent twice", async () => {
  await using server = openHttpServer(async (conn, head) => {
    const [, method, path] = /^(\S+) (\S+)/.exec(head) ?? [];
    if (path === "/end") {
      return await sendText(
        conn,
        `${method} ${/content-length: (\d+)/i.exec(head)?.[1]} ${/content-type/i.test(head)}`,
      );
    }
    await send(conn, `HTTP/1.1 ${path?.slice(1)} Moved\r\nLocation: /end\r\n\r\n`);
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  const post = async (status: number, body: BodyInit) =>
    await (await guard.fetch(`http://${PUBLIC}:${server.port}/${status}`, { method: "POST", body })).text();
  expect(await post(307, "12345")).toBe("POST 5 true");
  expect(await post(308, new Uint8Array(3))).toBe("POST 3 false");
  for (const status of [301, 302, 303]) expect(await post(status, "12345")).toBe("GET undefined false");
  await expect(post(307, ReadableStream.from([new Uint8Array(3)]))).rejects.toThrow(GENERIC);
});

test.each([
  "http://user:pw@a.example/",
  "http://user@a.example/",
  "ftp://a.example/",
  "file:///etc/passwd",
  "data:text/plain,hello",
  "gopher://a.example/",
  "blob:http://a.example/1",
  "http://localhost./",
  "http://0x7f.1/",
  "http://[::ffff:7f00:1]/",
  "http://１２７.0.0.1/",
  "http://8.8.8.8:8080/",
])("%s is rejected by its text, without a lookup", { tags: ["E04", "E06", "E07"] }, async (url) => {
  await using guard = await openTestGuard({ "a.example": [PUBLIC] }, { allow: [] });
  const { code, message } = await failureOf(guard.fetch(url));
  expect([code, message]).toEqual([
    "address_not_allowed",
    expect.stringMatching(`^Can't fetch from "[^"@]+": ${GENERIC}$`),
  ]);
  expect(guard.lookups).toEqual([]);
});

test.each(["http://a%00b/", "http://%zz/", "http://", "a.example", "http://a.example:99999/", "http://[::1/"])(
  "refuses %j as a URL",
  { tags: ["E08"] },
  async (url) => {
    await using guard = await openTestGuard({});
    expect(await failureOf(guard.fetch(url))).toMatchObject({ code: "invalid_request" });
  },
);

test("checks and connects to the host that the URL parser reads", { tags: ["E08"] }, async () => {
  await using pair = await openPair();
  await using guard = await openTestGuard({ "good.example": [PUBLIC], "evil.example": [PRIVATE] });
  const { port } = pair;
  for (
    const [text, path] of [
      [`http://good.example:${port}\\@evil.example:${port}/`, `/@evil.example:${port}/`],
      [`http://good.example:${port}#@evil.example:${port}/`, "/"],
      [`http://good.exa\tmple:${port}/a\nb`, "/ab"],
      [`  http://GOOD.example:${port}/x/../y `, "/y"],
      [`http://good.example:${port}?@evil.example/`, "/?@evil.example/"],
      [`http:\\\\good.example:${port}\\z`, "/z"],
    ] as const
  ) {
    expect(await (await guard.fetch(text)).text(), text).toBe(`at ${path}`);
  }
  expect(new Set(guard.lookups)).toEqual(new Set(["good.example"]));
  expect(pair.secret.connections).toBe(0);
});

test("proxy settings in the environment have no effect, whenever they are set", { tags: ["E09"] }, async () => {
  await using pair = await openPair();
  await using foreign = openSilentListener();
  const setAll = () => {
    for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]) {
      Deno.env.set(name, `http://127.0.0.1:${foreign.port}`);
    }
    for (const name of ["NO_PROXY", "no_proxy"]) Deno.env.set(name, "*");
    Deno.env.set("NODE_USE_ENV_PROXY", "1");
  };
  setAll();
  await using guard = await openTestGuard({ "a.example": [PUBLIC], "inner.example": [PRIVATE] });
  for (let round = 0; round < 2; round++) {
    expect(await (await guard.fetch(`http://a.example:${pair.port}/`)).text()).toBe("at /");
    await failureOf(guard.fetch(`http://inner.example:${pair.port}/`));
    await failureOf(guard.fetch(`http://${PRIVATE}:${pair.port}/`));
    await failureOf(guard.fetch(`https://inner.example:${pair.port}/`));
    setAll();
  }
  await (await guard.fetch(`http://a.example:${pair.port}/`)).text();
  expect(pair.secret.connections).toBe(0);
  expect(foreign.connections).toBe(0);
  expect(Object.keys(Deno.env.toObject()).filter((name) => /_proxy$/i.test(name))).toEqual([]);
});

test(
  "makes a new lookup and connection for every call, even to a keep-alive server",
  { tags: ["E12"] },
  async () => {
    await using pair = await openPair();
    let isPrivateNow = false;
    await using guard = await openTestGuard({ "a.example": () => isPrivateNow ? [PRIVATE] : [PUBLIC] });
    const url = `http://a.example:${pair.port}/`;
    for (let call = 0; call < 3; call++) await (await guard.fetch(url)).text();
    expect(guard.lookups).toHaveLength(3);
    expect(pair.server.requests).toHaveLength(3); // the server reads one request per connection
    isPrivateNow = true;
    expect(await failureOf(guard.fetch(url))).toMatchObject({ code: "upstream_error" });
    expect(pair.secret.connections).toBe(0);
  },
);

test("closed, silent, hanging up, filtered, unknown and private targets look the same", { tags: ["E13"] }, async () => {
  await using silent = openSilentListener(PUBLIC);
  let hungUp = 0;
  await using _hangingUp = openStreamServer(async (conn) => {
    await conn.read(new Uint8Array(4096));
    hungUp++;
  }, { hostname: "127.0.0.4", port: silent.port });
  await using secret = openSilentListener(PRIVATE, silent.port);
  let answer: () => Promise<string[]> = () => Promise.resolve([]);
  await using guard = await openTestGuard({ "a.example": () => answer() }, {
    allow: [`${PUBLIC}/32`, "127.0.0.4/31"],
    limits: { connectMs: 1_000 },
  });
  using clock = standingClock();
  const cases: Record<string, () => Promise<string[]>> = {
    private: () => Promise.resolve([PRIVATE]),
    "private and closed": () => Promise.resolve(["127.0.0.9"]),
    closed: () => Promise.resolve(["127.0.0.5"]),
    "hanging up": () => Promise.resolve(["127.0.0.4"]),
    silent: () => Promise.resolve([PUBLIC]),
    "lookup without answer": () => new Promise(() => {}),
    unknown: () => Promise.reject(new Error("ENOTFOUND")),
    "metadata": () => Promise.resolve(["169.254.169.254"]),
  };
  for (const scheme of ["http", "https"]) {
    for (const [title, resolve] of Object.entries(cases)) {
      answer = resolve;
      const failing = failureOf(guard.fetch(`${scheme}://a.example:${silent.port}/`));
      const hasNoEnd = ["silent", "lookup without answer"].includes(title);
      expect(hasNoEnd ? await clock.until(failing, 500) : await failing, `${scheme} ${title}`).toEqual({
        code: "upstream_error",
        message: `Can't fetch from "a.example:${silent.port}": ${GENERIC}`,
      });
    }
  }
  expect(secret.connections).toBe(0);
  expect(hungUp).toBe(2);
});

test("tries the second address if the first doesn't respond", async () => {
  await using server = openHttpServer((conn) => sendText(conn, "second"), { hostname: PUBLIC });
  await using guard = await openTestGuard({ "a.example": ["127.0.0.5", PUBLIC] }, { allow: ["127.0.0.0/8"] });
  expect(await (await guard.fetch(`http://a.example:${server.port}/`)).text()).toBe("second");
});

test("the caller's signal ends a call before and during its response", async () => {
  await using server = openHttpServer(async (conn) => {
    await send(conn, "HTTP/1.1 200 OK\r\n\r\npart");
    await conn.read(new Uint8Array(1));
  }, { hostname: PUBLIC });
  await using guard = await openTestGuard({});
  const url = `http://${PUBLIC}:${server.port}/`;
  const reason = new Error("left");
  await expect(guard.fetch(url, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  const controller = new AbortController();
  const reader = (await guard.fetch(url, { signal: controller.signal })).body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("part");
  const rest = reader.read();
  controller.abort(reason);
  await expect(rest).rejects.toBe(reason);
});

test("closing the guard ends running calls and refuses new ones", async () => {
  await using server = openHttpServer(async (conn) => {
    await send(conn, "HTTP/1.1 200 OK\r\n\r\npart");
    await conn.read(new Uint8Array(1));
  }, { hostname: PUBLIC });
  const guard = await openTestGuard({});
  const response = await guard.fetch(`http://${PUBLIC}:${server.port}/`);
  const text = failureOf(response.text());
  await guard.close();
  expect(await text).toMatchObject({ code: "not_available" });
  expect(await failureOf(guard.fetch("http://a.example/"))).toMatchObject({ code: "not_available" });
});
