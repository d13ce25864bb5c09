/** What the first visit ends in. */
import { ApiError } from "../../api/client.ts";
import type { Store } from "../store.ts";

/** Id that the server gives its built-in character. */
const BUILTIN_ID = "pim";

/** Ends the wizard in a chat with the built-in character; in an empty one where the character was removed. @throws {ApiError} */
export async function beginFirstChat(store: Store): Promise<void> {
  await store.completeSetup();
  try {
    const { id } = await store.api.beginChat({ character_ids: [BUILTIN_ID], greeting: 0 });
    store.router.go(`/c/${encodeURIComponent(id)}`, { replace: true });
  } catch (thrown) {
    if (!(thrown instanceof ApiError) || thrown.status !== 404) throw thrown;
    store.router.go("/new", { replace: true });
  }
}
