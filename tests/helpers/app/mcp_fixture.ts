/** The MCP client with its own store, without other services. */
import { AppError } from "../../../services/errors.ts";
import { randomBytes } from "../../../services/crypto/random.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { createEventHub } from "../../../services/events/event_hub.ts";
import { type Mcp, type McpDeps, openMcp } from "../../../services/mcp/mcp.ts";
import { tempFolder, testDatabase } from "../files/storage_folder.ts";

/** Opens the client; programs are allowed. Dispose of it by `await using`. */
export async function openMcpBench(options: Pick<McpDeps, "limits"> = {}): Promise<{ mcp: Mcp } & AsyncDisposable> {
  const folder = await tempFolder();
  const db = await testDatabase(folder.file("app.db"));
  const mcp = await openMcp({
    db,
    sealer: createSealer(randomBytes(32)).forPurpose("tools"),
    events: createEventHub(() => {}),
    allowsPrograms: true,
    log: () => {},
    now: Date.now,
    version: "0.0.0-test",
    openGuard: () => Promise.reject(new AppError("address_not_allowed", "No request of this test leaves the machine")),
    cacheFolder: folder.path,
    ...options,
  });
  return {
    mcp,
    async [Symbol.asyncDispose]() {
      await mcp.close();
      await db[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}
