/**
 * The program that the conformance tests of MCP run as client: Parlor's client, signed in where the server asks, calls each
 * tool once. The page of the authorization server is followed without a person.
 *
 * @example deno run -A mcp_client.ts http://localhost:3000/mcp
 */
import { SignInNeededError } from "../../../services/mcp/mcp_result.ts";
import { openMcpBench } from "../../helpers/app/mcp_fixture.ts";

/** Time limit of the sign-in. */
const MAX_SIGN_INS = 3;
const url = Deno.args.at(-1)!;
const context = JSON.parse(Deno.env.get("MCP_CONFORMANCE_CONTEXT") ?? "{}");
const { signal } = new AbortController();

// How long each wait is meant to be: on a busy machine it takes longer.
const { setTimeout } = globalThis;
globalThis.setTimeout = Object.assign((act: () => void, delayMs?: number) => {
  console.log(`waits for ${delayMs} ms`);
  return setTimeout(act, delayMs);
}, setTimeout);

await using bench = await openMcpBench();
const { mcp } = bench;
let signIns = 0;

async function signIn(): Promise<void> {
  if (++signIns > MAX_SIGN_INS) throw new Error("asked to sign in too often");
  const page = await mcp.startSignIn("one", "http://127.0.0.1:8787/api/tools/callback").catch(async (error) => {
    // The authorization server of the tests has a port of its own. An owner would allow it in the settings.
    const [, origin] = /leads to "([^"]+)"/.exec(error.message) ?? [];
    if (origin === undefined) throw error;
    await mcp.put("one", { trustedOrigins: [origin] });
    await mcp.test("one", signal); // The server says again how to sign in.
    return await mcp.startSignIn("one", "http://127.0.0.1:8787/api/tools/callback");
  });
  const response = await fetch(page, { redirect: "manual" });
  await response.body?.cancel();
  const location = new URL(response.headers.get("location")!, page);
  const { code, state, iss, error } = Object.fromEntries(location.searchParams);
  await mcp.finishSignIn({ state: state!, code, issuer: iss, error });
}

// Parlor has no public address for the document of its client; an owner can enter the address of one as client id.
const published = Deno.env.get("MCP_CONFORMANCE_SCENARIO") === "auth/basic-cimd"
  ? "https://conformance-test.local/client-metadata.json"
  : undefined;
await mcp.put("one", {
  transport: "http",
  url,
  clientId: context.client_id ?? published,
  clientSecret: context.client_secret,
});
let status = await mcp.test("one", signal);
while (status.state === "needs_auth") {
  await signIn();
  status = await mcp.test("one", signal);
}
if (status.state !== "ready") throw status.error ?? new Error(status.state);
for (const { name } of status.tools) {
  const args: Record<string, unknown> = name === "add_numbers" ? { a: 2, b: 3 } : {};
  for (;;) {
    try {
      const tool = await mcp.findTool("one", name, signal);
      const output = await mcp.callTool(tool!, args, { signal, timeoutMs: 20_000, maxBytes: 100_000 });
      console.log(name, JSON.stringify(output));
      break;
    } catch (error) {
      if (!(error instanceof SignInNeededError)) throw error;
      await signIn();
    }
  }
}
