/** The line below the name of a page of the settings: what it holds, and whether that works. */
import { lorebookApi, presetApi } from "../../api/documents.ts";
import { imageApi } from "../../api/images.ts";
import { memoryApi } from "../../api/memories.ts";
import { regexScriptApi } from "../../api/regex_scripts.ts";
import { getStoredReport } from "../../api/server.ts";
import { speechApi } from "../../api/speech.ts";
import { toolServersApi } from "../../api/tools.ts";
import { usageApi } from "../../api/usage.ts";
import { getStateTone } from "../../state/connections/connection_state.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../hooks.tsx";

/** A state for which one small request is needed; `kinds` are the events after which it's asked again. */
interface AskedState {
  ask(store: Store): Promise<string | undefined>;
  kinds: string[];
}

/** Returns a state from what the page has. Reads signals. */
type KnownState = (store: Store) => string | undefined;

/** By page. */
const KNOWN: Record<string, KnownState> = {
  general: ({ preferences, device }) =>
    preferences.settings.value?.display_name || texts.paletteList[device.theme.value],
  connections({ connections }) {
    const shown = connections.shown.value;
    if (connections.state.value !== "ready") return undefined;
    const bad = shown.filter((item) => getStateTone(connections.getState(item)) === "bad").length;
    return describeServers(shown.length, bad, texts.settings.states.connections);
  },
  templates({ preferences }) {
    const templates = preferences.settings.value?.prompt_templates;
    return templates && describeCount(templates.length, texts.settings.states.templates);
  },
  privacy({ auth }) {
    const t = texts.settings.states;
    const status = auth.value;
    if (status === undefined) return undefined;
    if (status.method !== null) return status.method === "session" ? t.signedInPasskey : t.signedInToken;
    return status.bypass === "loopback" ? t.local : status.bypass === "auth_disabled" ? t.off : t.open;
  },
  about({ connections }) {
    const version = connections.health.value?.version;
    return version === undefined ? undefined : texts.settings.states.version(version);
  },
};

/** By page. */
const ASKED: Record<string, AskedState> = {
  models: {
    ask: async ({ api }) => describeCount((await api.listLocalModels()).length, texts.settings.states.models),
    kinds: ["local_model"],
  },
  usage: {
    ask: async ({ api }) => texts.settings.states.repliesToday((await usageApi(api.client).read(1)).total.replies),
    kinds: ["reply_ended", "usage"],
  },
  memory: {
    async ask({ api, preferences }) {
      const t = texts.settings.states;
      const waiting = (await memoryApi(api.client).listProposals()).length;
      if (waiting > 0) return t.suggestions(waiting);
      return preferences.settings.peek()?.memory_proposals ? t.suggestionsOn : t.suggestionsOff;
    },
    kinds: ["memory_proposal", "settings"],
  },
  presets: {
    ask: async ({ api }) => describeCount((await presetApi(api.client).list()).length, texts.settings.states.presets),
    kinds: ["preset"],
  },
  lorebooks: {
    ask: async ({ api }) =>
      describeCount((await lorebookApi(api.client).list()).length, texts.settings.states.lorebooks),
    kinds: ["lorebook"],
  },
  regex: {
    ask: async ({ api }) =>
      describeCount((await regexScriptApi(api.client).list()).length, texts.settings.states.scripts),
    kinds: ["regex_script"],
  },
  tools: {
    async ask({ api }) {
      const servers = await toolServersApi(api.client).list();
      const bad = servers.filter(({ state }) => state === "failed" || state === "needs_auth").length;
      return describeServers(servers.length, bad, texts.settings.states.toolServers);
    },
    kinds: ["tool_server"],
  },
  personas: {
    ask: async ({ api }) => describeCount((await api.listPersonas()).length, texts.settings.states.personas),
    kinds: ["persona"],
  },
  voice: {
    async ask({ api }) {
      const { base_url } = await speechApi(api.client).getSpeechConfig();
      return base_url === "" ? texts.settings.states.notSetUp : new URL(base_url).host;
    },
    kinds: ["speech"],
  },
  images: {
    ask: async ({ api }) =>
      describeCount((await imageApi(api.client).listBackends()).length, texts.settings.states.imageServers),
    kinds: ["image_connection"],
  },
  data: {
    async ask({ api }) {
      const { items } = await getStoredReport(api.client);
      return items.length === 0 ? texts.settings.states.intact : texts.settings.states.damaged(items.length);
    },
    kinds: ["unreadable"],
  },
  trash: {
    async ask({ api }) {
      const { length } = await api.listTrash();
      return length === 0 ? texts.settings.states.empty : texts.settings.states.trash(length);
    },
    kinds: ["trash"],
  },
};

/** Reports whether a page has such a line. */
export function hasState(section: string): boolean {
  return section in KNOWN || section in ASKED;
}

/** The line. It's empty until the state is known, and where it can't be loaded: the page itself shows why. */
export function SectionState({ id, section }: { id: string; section: string }) {
  const [known, asked] = [KNOWN[section], ASKED[section]];
  if (known) return <KnownLine id={id} read={known} />;
  return asked ? <AskedLine id={id} {...asked} /> : null;
}

function KnownLine({ id, read }: { id: string; read: KnownState }) {
  return <Line id={id} text={read(useStore())} />;
}

function AskedLine({ id, ask, kinds }: { id: string } & AskedState) {
  const store = useStore();
  return <Line id={id} text={useResource(() => ask(store), ...kinds).value} />;
}

function Line({ id, text }: { id: string; text: string | undefined }) {
  return <span id={id} class="settings-state">{text}</span>;
}

function describeCount(count: number, describe: (n: number) => string): string {
  return count === 0 ? texts.settings.states.none : describe(count);
}

function describeServers(count: number, bad: number, describe: (n: number) => string): string {
  const text = describeCount(count, describe);
  return bad === 0 ? text : texts.settings.states.failing(text, bad);
}
