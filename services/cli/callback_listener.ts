/** Local listener that receives the sign-in code from the browser. */

const CLOSE_WITHIN_MS = 1_000;

/** Result of the sign-in in the browser. */
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
 * @param state Random value. Requests without it come from other pages and are refused.
 */
export function openCallbackListener(state: string): CallbackListener {
  const { promise, resolve } = Promise.withResolvers<CallbackOutcome>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const url = new URL(request.url);
    // Checks the host, too: otherwise a page could reach the listener by its own host name (DNS rebinding).
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
    // Sends the last page, but doesn't wait for idle connections that browsers open in advance.
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
