/** Texts of the connection form and the connection test. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const connectionForm = {
  form: {
    nearby: "Found on this machine",
    byHand: "Other server or service",
    presets: "Suggestions",
    keyNeeded: "This service requires an API key. It’s stored encrypted and never shown again.",
    keyShow: "Show key",
    keyHide: "Hide key",
    keyExposed:
      "This URL isn’t encrypted, so others on the network can read the key. Use https:// if the server supports it.",
    modelOffered: (n: number) => `Leave empty to use the first of ${count(n, { one: "model", other: "models" })}.`,
    contextKnown: (tokens: string) => `In tokens. Leave empty to use the ${tokens} reported by the server.`,
    addTitle: "Add connection",
    editTitle: "Edit connection",
    missing: "This connection doesn’t exist",
    name: "Name",
    kind: "Type",
    url: "URL",
    urlHint: "For example, http://127.0.0.1:8080. /v1 is added if it’s missing.",
    key: "API key",
    keyHint: "Only if the server requires one. It’s stored encrypted and never shown again.",
    keySaved: "A key is saved. Leave this empty to use it.",
    keyMoved: "The saved key belongs to another URL and won’t be used. Enter a key if the new server requires one.",
    keyClear: "Remove saved key",
    keyCleared: "Key removed",
    model: "Model",
    modelHint: "Leave empty to use the server’s first model.",
    context: "Context size",
    contextHint: "In tokens. Leave empty to ask the server.",
    contextBad: "Enter a whole number of tokens, such as 8192",
    urlBad: "Enter a URL that starts with http:// or https://",
    save: "Save",
    saveAndUse: "Save and use",
    saveFailed: "Couldn’t save the connection",
    testFailed: "Couldn’t run the test",
  },

  connectionTest: {
    good: "The connection works",
    bad: "The connection doesn’t work",
    reachable: "Server reachable",
    unreachable: "Server unreachable",
    authorized: "Access granted",
    unauthorized: "Access denied",
    models: (n: number) => count(n, { one: "model available", other: "models available" }),
    context: (n: string) => `Context size: ${n} tokens`,
    latency: (ms: number) => `${ms} ms`,
  },
};
