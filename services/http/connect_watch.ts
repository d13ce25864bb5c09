/** Notices a machine that does not even take a connection, which `fetch` by itself tells nobody. */
import { connect } from "node:net";

/**
 * Watches over the connecting of one call.
 *
 * fetch tells nobody when it has connected. So when half of the limit has passed without an answer, a bare TCP connection
 * tries the same address: a server that is still thinking takes it at once, a machine that is gone does not.
 *
 * @param onUnreachable Called once when the limit has passed and no connection was taken.
 * @returns `done`, to be called when the call has been answered or has failed.
 */
export function watchConnect(url: URL, limitMs: number, onUnreachable: () => void): { done(): void } {
  let socket: ReturnType<typeof connect> | undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  const done = () => (clearTimeout(timer), socket?.destroy());
  let timer = setTimeout(() => {
    socket = connect({ host, port });
    socket.once("connect", done);
    // A refusal reaches fetch itself, which says it better.
    socket.once("error", done);
    timer = setTimeout(() => {
      socket?.destroy();
      onUnreachable();
    }, limitMs / 2);
  }, limitMs / 2);
  return { done };
}
