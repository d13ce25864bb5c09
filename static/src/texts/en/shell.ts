/** Texts used everywhere, and those of the page frame, the sidebar, the chat list and the command palette. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const shell = {
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
  hiddenShown: "With hidden characters shown",
  mixedScripts: (scripts: string) => `mixes ${scripts}`,
  chunkFailed: "Couldn’t load this part of the page",
  chunkFailedText: "The server may have been updated. Reload to get the latest version.",

  errors: {
    noAnswer: "The server isn’t responding",
    proxySignIn: "Your sign-in at the proxy in front of the server has ended",
    queued: "Not sent yet. Parlor sends it when the server responds.",
    inTrash: "It’s in the trash. Restore it in the settings under Trash, then try again.",
    status: (status: number) => `The server returned status ${status}`,
    replyFailed: "The reply failed for an unknown reason",
  },

  banner: {
    untrustedProxy:
      "A proxy forwards requests to this server but isn’t listed in trusted_proxies. Add it so that Parlor can tell who’s connecting.",
    bareProxy:
      "This page was opened through a proxy that hides who’s connecting. Access without sign-in is off until the server restarts. Set loopback_auth_bypass = false and add the proxy to trusted_proxies.",
    offline: "Can’t reach the server. Retrying.",
    proxySignIn:
      "Your sign-in at the proxy in front of the server has ended. Unsent changes stay in this browser and are sent after you sign in.",
    toProxySignIn: "Sign in at the proxy",
  },

  refused: {
    signIn: "Sign-in required",
    signInText: "This server is protected. Open it at its localhost address on the machine it runs on.",
    host: "Address not allowed",
    hostText: "The server doesn’t recognize this host name. Add it to allowed_hosts, then reload.",
    localhostText: "Parlor is available only through the proxy in trusted_proxies. Use the proxy’s address.",
  },

  unknown: {
    title: "Page not found",
    text: "There’s no page at this address.",
    home: "Go to chats",
  },

  nav: {
    label: "Chats and settings",
    open: "Open the chat list",
    fold: "Hide the sidebar",
    unfold: "Show the sidebar",
    characters: "Characters",
    newChat: "New chat",
    chats: "Chats",
    settings: "Settings",
    today: "Today",
    yesterday: "Yesterday",
    thisWeek: "This week",
    none: "Your chats will appear here.",
    untitled: "Untitled",
    failed: "Couldn’t load chats",
    answering: "Reply in progress",
    replyEnded: "Reply finished",
    search: "Search",
    library: "Library",
    activity: "Activity",
    runningCount: (n: number) => `, ${n} running`,
    branch: "Branch",
    unread: "Unread",
    waitingCalls: (n: number) => count(n, { one: "approval waiting", other: "approvals waiting" }),
    pinned: "Pinned",
    chatCount: (n: number) => count(n, { one: "chat", other: "chats" }),
    menu: (title: string) => `Actions for “${title}”`,
    select: "Select",
    rename: "Rename",
    pin: "Pin",
    unpin: "Unpin",
    file: "Move to folder",
    exportAs: (format: string) => `Export as ${format}`,
    print: "Print",
    delete: "Delete",
    renameTitle: "Rename chat",
    titleLabel: "Title",
    fileTitle: "Move chat to folder",
    folderLabel: "Folder",
    folderHint: "Enter a new name to create a folder. Empty folders disappear.",
    removeFromFolder: "Remove from folder",
    removed: "Chat deleted",
    skip: "Skip to chat",
  },
  home: {
    continue: "Continue",
    all: "All characters",
    addCharacter: "Add a character",
    starters: "Suggestions",
    inserted: "Suggestion inserted",
    starterTexts: [
      { label: "Explain something", text: "Explain this to me in plain words, with an example: " },
      { label: "Improve a text", text: "Improve this text. Keep its meaning and tone, and list what you changed:\n\n" },
      { label: "Plan something", text: "Help me plan this. Ask me what you need to know first: " },
    ],
    replies: (n: number) => count(n, { one: "reply in progress", other: "replies in progress" }),
    show: "Show",
  },

  palette: {
    title: "Commands",
  },
};
