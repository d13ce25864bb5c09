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
    more: "More",
    kindHint: "How Parlor talks to the server.",
    urlHintOllama: "For example, http://127.0.0.1:11434.",
    contextOllama: "Largest context",
    contextHintOllama:
      "In tokens. Parlor asks for as much as a chat needs, up to this. Leave empty for the model’s maximum.",
    server: "Server software",
    serverHint: "Decides which settings are sent, and under which names.",
    serverAuto: (title: string | undefined) => title ? `Automatic (${title})` : "Automatic",
    headers: "Extra headers",
    headersHint: "Sent with every request. Values are stored encrypted and never shown again.",
    headerName: "Header name",
    headerValue: "Value",
    headerSaved: "Saved. Type to replace.",
    headerNameBad: "Enter a header name, such as X-Title",
    headerValueBad: "Enter a value in one line",
    headersMoved: "The saved header values belong to another URL and won’t be sent. Enter them again.",
    addHeader: "Add header",
    removeHeader: (name: string) => `Remove header ${name}`,
    extraBody: "Extra body",
    extraBodyHint:
      "A JSON object that is added to every chat request. Settings of the chat and its preset take precedence.",
    extraBodyBad: (problem: string) => `Not valid JSON: ${problem}`,
    extraBodyNoObject: 'Enter a JSON object, such as {"top_k": 40}',
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

  connectionCard: {
    suggestOllama:
      "This server is Ollama. Through its own API, Parlor sets the context size, so that no part of a chat is dropped silently.",
    switchToOllama: "Switch to Ollama’s API",
    switched: (name: string) => `“${name}” now uses Ollama’s API`,
    refused: (n: number) => count(n, { one: "setting refused by the server", other: "settings refused by the server" }),
    refusedHint: "Not sent to these models for now.",
    refusedUntil: (date: string) => `until ${date}`,
    tryAgain: "Try again",
    forgotten: "These settings will be sent again",
    server: (title: string) => `Server: ${title}`,
    answers: (model: string) => `Server’s first model (${model})`,
    headers: (names: string) => `Extra headers: ${names}`,
    notices: {
      model_spills:
        "The model doesn’t fit into the graphics memory, so part of it runs in main memory and replies are slow.",
    },
  },
};
