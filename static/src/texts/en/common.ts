/** Words used everywhere, and what the frame says. */

/** English. */
export const common = {
  locale: "en",
  product: "Parlor",
  close: "Close",
  cancel: "Cancel",
  save: "Save",
  undo: "Undo",
  retry: "Try again",
  reload: "Reload the page",
  details: "Details",
  requestId: (id: string) => `Request ${id}`,
  loading: "Loading",
  chunkFailed: "This part of the page could not be loaded",
  chunkFailedText: "The server may have been updated. Reload the page to get the new version.",

  errors: {
    noAnswer: "The server does not answer",
    status: (status: number) => `The server answered with status ${status}`,
    replyFailed: "The reply failed without saying why",
  },

  banner: {
    untrustedProxy:
      "A proxy that is not listed forwards requests to this server. Until it is listed in trusted_proxies, Parlor cannot tell who is asking.",
    bareProxy:
      "This page was reached by an address the server does not see: a proxy hides who is asking. Access without sign-in is switched off until the restart. Set loopback_auth_bypass = false and list the proxy in trusted_proxies.",
    offline: "The server cannot be reached. Trying again.",
  },

  refused: {
    signIn: "Sign-in is needed",
    signInText: "This server is protected. Open it on the machine it runs on, at its localhost address.",
    host: "This address is not allowed",
    hostText: "The server does not know the name it was called by. Add it to allowed_hosts, then reload.",
  },

  unknown: { title: "Nothing here", text: "There is no page at this address.", home: "Go to the chats" },
};
