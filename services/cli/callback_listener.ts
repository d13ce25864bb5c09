/** Where the page sends the browser after its ceremony: a listener of the command line's own, on this machine, for one visit. */

const CLOSE_WITHIN_MS = 1_000;

/** What the browser brought. */
export type CallbackOutcome = { code: string } | { denied: true };

/** An open listener. */
export interface CallbackListener {
  readonly port: number;
  readonly outcome: Promise<CallbackOutcome>;
  close(): Promise<void>;
}

/**
 * Listens on a free port of 127.0.0.1.
 *
 * @param state Random; a visit without it comes from somebody else's page and is turned away.
 */
export function openCallbackListener(state: string): CallbackListener {
  const { promise, resolve } = Promise.withResolvers<CallbackOutcome>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const url = new URL(request.url);
    // The name in the address is ours, too: otherwise a page could reach us by a name of its own.
    const isOurs = url.hostname === "127.0.0.1" && url.pathname === "/callback" &&
      url.searchParams.get("state") === state;
    if (!isOurs) return page(404, "Nothing here", "This address is for signing in the command line.");
    const code = url.searchParams.get("code");
    if (code !== null) {
      resolve({ code });
      return page(200, "Return to the terminal", "The command line is signed in. You can close this tab.");
    }
    resolve({ denied: true });
    return page(200, "Not signed in", "The request was denied. You can close this tab.");
  });
  return {
    port: server.addr.port,
    outcome: promise,
    // The last page is let out; a connection that browsers open ahead and never use is not waited for.
    close: () =>
      Promise.race([server.shutdown(), new Promise<void>((resolve) => setTimeout(resolve, CLOSE_WITHIN_MS))]),
  };
}

function page(status: number, title: string, text: string): Response {
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title} · Parlor</title>` +
    `<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">` +
    `<main><h1>${title}</h1><p>${text}</p></main></html>`;
  return new Response(html, {
    status,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      "Cache-Control": "no-store",
      "Referrer-Policy": "no-referrer",
      "X-Content-Type-Options": "nosniff",
      "Connection": "close",
    },
  });
}
