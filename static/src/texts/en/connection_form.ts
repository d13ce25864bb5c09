/** The form of a connection, and what a test of one found. */
import { counter } from "../plural.ts";

const count = counter("en");

/** English. */
export const connectionForm = {
  form: {
    nearby: "Found on this machine",
    byHand: "Another server or service",
    presets: "Suggestions",
    keyNeeded: "This service asks for a key. It is stored sealed and never shown again.",
    keyShow: "Show what is typed",
    keyHide: "Hide what is typed",
    keyExposed:
      "This address has no encryption: the key can be read on its way. Use https:// where the server offers it.",
    modelOffered: (n: number) =>
      `Leave empty to use the first of ${count(n, { one: "model", other: "models" })} offered.`,
    contextKnown: (tokens: string) => `In tokens. Left empty, the ${tokens} that the server reports apply.`,
    addTitle: "Add a connection",
    editTitle: "Edit the connection",
    missing: "There is no such connection",
    name: "Name",
    kind: "Kind",
    url: "Address",
    urlHint: "Such as http://127.0.0.1:8080; /v1 is added where it is missing.",
    key: "API key",
    keyHint: "Only for servers that ask for one. It is stored sealed and never shown again.",
    keySaved: "A key is stored. Leave this empty to keep it.",
    keyMoved:
      "The stored key belongs to another address and is not carried over. Enter it again if the new one needs a key.",
    keyClear: "Remove the stored key",
    keyCleared: "Key removed",
    model: "Model",
    modelHint: "Leave empty to use the first one the server offers.",
    context: "Context size",
    contextHint: "In tokens. Leave empty to ask the server.",
    contextBad: "A whole number of tokens, such as 8192",
    urlBad: "An address that begins with http:// or https://",
    save: "Save",
    saveAndUse: "Save and use",
    saveFailed: "The connection could not be saved",
    testFailed: "The test could not be run",
  },

  verdict: {
    good: "The connection works",
    bad: "The connection does not work",
    reachable: "Server answers",
    unreachable: "Server does not answer",
    authorized: "Access granted",
    unauthorized: "Access refused",
    models: (n: number) => count(n, { one: "model offered", other: "models offered" }),
    context: (n: string) => `Context of ${n} tokens`,
    latency: (ms: number) => `${ms} ms`,
  },
};
