import { expect, test } from "vitest";
import { explainConnectError } from "../../../services/http/upstream_error.ts";
import { openSilentListener } from "../../helpers/network/loopback_servers.ts";

test("a request that ends at its time limit is explained as one without a response", async () => {
  await using silent = openSilentListener();
  const sent = fetch(`http://127.0.0.1:${silent.port}/`, { signal: AbortSignal.timeout(50) });
  const thrown = await sent.then(() => undefined, (error) => error);
  expect(explainConnectError(thrown)).toEqual({ kind: "unreachable", reason: "no response from this address" });
});
