/** Texts used everywhere, and those of the page frame. */

/** English. */
export const common = {
  locale: "en",
  product: "Parlor",
  close: "Close",
  cancel: "Cancel",
  save: "Save",
  undo: "Undo",
  retry: "Try again",
  reload: "Reload page",
  details: "Details",
  requestId: (id: string) => `Request ${id}`,
  loading: "Loading",
  chunkFailed: "Couldn’t load this part of the page",
  chunkFailedText: "The server may have been updated. Reload to get the latest version.",

  errors: {
    noAnswer: "The server isn’t responding",
    status: (status: number) => `The server returned status ${status}`,
    replyFailed: "The reply failed for an unknown reason",
  },

  banner: {
    untrustedProxy:
      "A proxy forwards requests to this server but isn’t listed in trusted_proxies. Add it so that Parlor can tell who’s connecting.",
    bareProxy:
      "This page was opened through a proxy that hides who’s connecting. Access without sign-in is off until the server restarts. Set loopback_auth_bypass = false and add the proxy to trusted_proxies.",
    offline: "Can’t reach the server. Retrying.",
  },

  refused: {
    signIn: "Sign-in required",
    signInText: "This server is protected. Open it at its localhost address on the machine it runs on.",
    host: "Address not allowed",
    hostText: "The server doesn’t recognize this host name. Add it to allowed_hosts, then reload.",
    localhostText: "Parlor opens only through the proxy in trusted_proxies. Use the proxy’s address.",
  },

  unknown: {
    title: "Page not found",
    text: "There’s no page at this address.",
    home: "Go to chats",
  },
};
