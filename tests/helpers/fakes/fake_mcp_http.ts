/**
 * An MCP server over HTTP that misbehaves on request, with a sign-in of its own if `isProtected`: without the SDK.
 *
 * Tools: "json" answers in one body, "stream" as an event stream, "huge" and "flood" send 50 MiB, "cut" and "mute" end the
 * stream without a result, "expired" ends the session once, "leak" fails with the access token in its message.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";

/** Options. */
export interface FakeMcpOptions {
  /** Requires an access token. Issued tokens are valid until `revoke`. */
  isProtected?: boolean;
  /** Lists only "add", which adds the integers `a` and `b`. */
  isAdder?: boolean;
  /** Description of "add". */
  description?: string;
  /** Replaces fields of the metadata of its authorization server. */
  metadata?: Record<string, string>;
  /** Authorization server that it names instead of itself. */
  authorizationServer?: string;
}

/** The running server. Dispose of it. */
export interface FakeMcpHttp extends AsyncDisposable {
  /** Address of the endpoint. */
  readonly url: string;
  /** Headers of the requests to the endpoint, newest last. */
  readonly seen: Headers[];
  /** Number of clients that registered, and of grants by type. */
  readonly grants: Record<string, number>;
  /** Refuses the access tokens that were given out. */
  revoke(options?: { withRefreshTokens?: boolean }): void;
}

const TOOLS = ["cut", "expired", "flood", "huge", "json", "leak", "mute", "stream"];
const DIGIT = { type: "integer", minimum: 0, maximum: 9 };
const ADD = {
  name: "add",
  description: "Adds two numbers",
  inputSchema: {
    type: "object",
    properties: { a: DIGIT, b: DIGIT },
    required: ["a", "b"],
    additionalProperties: false,
  },
};
const MIB = 1024 * 1024;

/** Starts a server on a free port of this machine. */
export function openFakeMcpHttp(
  { isProtected = false, isAdder = false, description = ADD.description, metadata = {}, authorizationServer }:
    FakeMcpOptions = {},
): FakeMcpHttp {
  const seen: Headers[] = [];
  const grants: Record<string, number> = {};
  const tokens = new Set<string>();
  const refreshTokens = new Set<string>();
  const challenges = new Map<string, string>();
  let sessions = 1;
  const count = (what: string) => grants[what] = (grants[what] ?? 0) + 1;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const url = new URL(request.url);
    if (url.pathname === "/mcp") return await answerMcp(request);
    if (url.pathname === "/.well-known/oauth-protected-resource/mcp") {
      return Response.json({
        resource: `${url.origin}/mcp`,
        authorization_servers: [authorizationServer ?? url.origin],
      });
    }
    if (url.pathname === "/.well-known/oauth-authorization-server") {
      return Response.json({
        issuer: url.origin,
        authorization_endpoint: `${url.origin}/authorize`,
        token_endpoint: `${url.origin}/token`,
        registration_endpoint: `${url.origin}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
        authorization_response_iss_parameter_supported: true,
        ...metadata,
      });
    }
    if (url.pathname === "/register") {
      count("register");
      return Response.json({ ...await request.json(), client_id: `client-${grants.register}` }, { status: 201 });
    }
    if (url.pathname === "/authorize") {
      const { state, redirect_uri, code_challenge } = Object.fromEntries(url.searchParams);
      const code = crypto.randomUUID();
      challenges.set(code, code_challenge!);
      const back = new URL(redirect_uri!);
      for (const [name, value] of Object.entries({ code, state: state!, iss: url.origin })) {
        back.searchParams.set(name, value);
      }
      return Response.redirect(back, 302);
    }
    if (url.pathname === "/token") return grantToken(new URLSearchParams(await request.text()));
    return new Response(null, { status: 404 });
  });

  function grantToken(form: URLSearchParams): Response {
    const type = form.get("grant_type")!;
    const verifier = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url");
    const isGood = type === "authorization_code"
      ? challenges.get(form.get("code")!) === verifier
      : refreshTokens.delete(form.get("refresh_token")!);
    if (!isGood) {
      const error_description = `wrong: ${form.get("code")} or ${form.get("refresh_token")}`;
      return Response.json({ error: "invalid_grant", error_description }, { status: 400 });
    }
    count(type);
    const [access_token, refresh_token] = [crypto.randomUUID(), crypto.randomUUID()];
    tokens.add(access_token);
    refreshTokens.add(refresh_token);
    return Response.json({ access_token, refresh_token, token_type: "Bearer", expires_in: 3600 });
  }

  async function answerMcp(request: Request): Promise<Response> {
    seen.push(request.headers);
    const token = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
    if (isProtected && !tokens.has(token)) {
      const metadata = `${new URL(request.url).origin}/.well-known/oauth-protected-resource/mcp`;
      return new Response(null, {
        status: 401,
        headers: { "WWW-Authenticate": `Bearer resource_metadata="${metadata}"` },
      });
    }
    if (request.method !== "POST") return new Response(null, { status: request.method === "GET" ? 405 : 200 });
    const { id, method, params } = await request.json();
    if (method !== "initialize" && request.headers.get("mcp-session-id") !== `s${sessions}`) {
      return new Response(null, { status: 404 });
    }
    const reply = (result: unknown) => Response.json({ jsonrpc: "2.0", id, result });
    if (method === "initialize") {
      const serverInfo = { name: "fake", version: "1" };
      const response = reply({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
      response.headers.set("mcp-session-id", `s${sessions}`);
      return response;
    }
    if (id === undefined) return new Response(null, { status: 202 });
    if (method === "tools/list") {
      return reply({
        tools: isAdder ? [{ ...ADD, description }] : TOOLS.map((name) => ({ name, inputSchema: { type: "object" } })),
      });
    }
    if (params.name === "add") {
      const { a, b } = params.arguments;
      return reply({ content: [{ type: "text", text: String(a + b) }] });
    }
    if (params.name === "expired" && sessions === 1) {
      sessions++;
      return new Response(null, { status: 404 });
    }
    if (params.name === "leak") {
      return Response.json({ jsonrpc: "2.0", id, error: { code: -32_603, message: `refused with ${token}` } });
    }
    const result = { jsonrpc: "2.0", id, result: { content: [{ type: "text", text: params.name }] } };
    if (params.name === "huge") {
      return new Response(repeat("x", 50), { headers: { "content-type": "application/json" } });
    }
    const events = params.name === "stream"
      ? `: hello\n\nevent: message\ndata: ${JSON.stringify(result)}\n\n`
      : params.name === "flood"
      ? repeat("data: yyyy\n", 50)
      : params.name === "cut"
      ? `data: {"jsonrpc":"2.0","id":${id},"resu`
      : ": nothing\n\n";
    if (["stream", "flood", "cut", "mute"].includes(params.name)) {
      return new Response(events, { headers: { "content-type": "text/event-stream" } });
    }
    return Response.json(result);
  }

  return {
    url: `http://127.0.0.1:${server.addr.port}/mcp`,
    seen,
    grants,
    revoke({ withRefreshTokens = false } = {}) {
      tokens.clear();
      if (withRefreshTokens) refreshTokens.clear();
    },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** A body of many MiB, made as it is read. */
function repeat(text: string, mebibytes: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  const piece = new Uint8Array(Buffer.from(text.repeat(Math.ceil(64 * 1024 / text.length))));
  let left = mebibytes * MIB;
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) return controller.close();
      left -= piece.length;
      controller.enqueue(piece);
    },
  });
}
