/** Texts of the list of connections and their state. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const connections = {
  connection: {
    none: "No model connected",
    checking: "Checking the model",
    away: "Unreachable",
    demo: "Demo",
    states: {
      unknown: "Not tested yet",
      running: "Checking the model",
      good: "Ready",
      bad: "Unreachable",
      refused: "Access denied",
      starting: "Loading the model",
      busy: "Busy",
      failing: "Last reply failed",
    },
  },

  connections: {
    searchAgain: "Search again",
    testAll: "Test all",
    hasKey: "key saved",
    intro: "Servers and services that run your models. Chats use the active connection unless you choose another.",
    add: "Add connection",
    discover: "Find servers",
    searching: "Searching for servers",
    found: "Servers found",
    noneFound: "No servers found",
    noneFoundAdvice: "Start one, such as llama.cpp, Ollama or LM Studio, then search again. Or enter its URL.",
    discoverFailed: "Search failed",
    addAndUse: "Add and use",
    use: "Use",
    inUse: "In use",
    activated: (name: string) => `Now using “${name}”`,
    saved: "Connection saved",
    removed: "Connection deleted",
    remove: "Delete",
    edit: "Edit",
    test: "Test",
    testing: "Testing",
    models: (n: number) => count(n, { one: "model", other: "models" }),
    starting: "Still starting",
    needsKey: "Key required",
    none: "No connections yet",
    noneText: "Search for a server on this machine, or enter a URL.",
    loadFailed: "Couldn’t load connections",
    kinds: {
      openai: "OpenAI-compatible",
      "openai-responses": "OpenAI Responses",
      ollama: "Ollama",
      anthropic: "Anthropic",
      demo: "Demo",
    },
    demoNote: "Built-in sample replies. Not a language model.",
    unreadable: "Can’t read this connection. Delete it and add it again.",
    noModel: "Server’s first model",
  },

  firstRun: {
    title: "Connect a language model",
    text:
      "Replies currently come from the built-in demo, which isn’t a language model. Parlor can look for a model on this machine.",
    find: "Find a model",
    manual: "Enter a URL",
    later: "Not now",
  },
};
