/** Connections to language models: their list, their state. */
import { counter } from "../plural.ts";

const count = counter("en");

/** English. */
export const connections = {
  connection: {
    untested: "Not tested yet",
    refused: "Answers, but refuses access",
    none: "No model connected",
    checking: "Looking for the model",
    ready: "Ready",
    away: "Not reachable",
    demo: "Demonstration",
  },

  connections: {
    searchAgain: "Look again",
    testAll: "Test all",
    hasKey: "key stored",
    intro: "Where replies come from. One connection is in use at a time.",
    add: "Add a connection",
    discover: "Find servers",
    searching: "Looking for servers",
    found: "Found servers",
    noneFound: "No server was found",
    noneFoundAdvice: "Start one, such as llama.cpp, Ollama or LM Studio, and look again; or enter the address by hand.",
    discoverFailed: "The search failed",
    addAndUse: "Add and use",
    use: "Use",
    inUse: "In use",
    activated: (name: string) => `“${name}” answers from now on`,
    saved: "Connection saved",
    removed: "Connection deleted",
    remove: "Delete",
    edit: "Edit",
    test: "Test",
    testing: "Testing",
    models: (n: number) => count(n, { one: "model", other: "models" }),
    starting: "Still starting",
    needsKey: "Needs a key",
    none: "No connection yet",
    noneText: "Look for a server on this machine, or enter an address by hand.",
    loadFailed: "The connections could not be loaded",
    kinds: { openai: "OpenAI-compatible", anthropic: "Anthropic", demo: "Demonstration" },
    demoNote: "Answers by itself, word by word; not a language model.",
    unreadable: "The stored record cannot be read. Delete it and add the connection again.",
    noModel: "First model the server offers",
  },
};
