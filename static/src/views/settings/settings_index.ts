/**
 * The index of all settings, for the settings search and the command palette. A new setting needs a line here; `anchor`
 * is the id of its control. Everyday words for it are in `texts.settings.keywords`.
 */
import { foldForSearch } from "../../../../services/json/search_fold.ts";
import { texts } from "../../texts/texts.ts";

/** A page of the settings. */
export interface SettingsSection {
  id: string;
  title: string;
  /** Path, if it isn't a page of the settings. */
  path?: string;
}

/** Pages under one heading. A group without a title is one page, whose name says it all. */
export interface SettingsGroup {
  title?: string;
  sections: SettingsSection[];
}

/** One setting, or a whole page. */
export interface SettingEntry {
  title: string;
  /** Title of its page. */
  place: string;
  address: string;
  /** Other words for it, in the page's language and in English. */
  keywords: string;
}

/** What the index needs to know about the owner's data. */
export interface SettingsContext {
  /** The default preset, where sampling and the system prompt are. */
  presetId: string;
}

/** Path of the list of sections. */
export const SETTINGS_PATH = "/settings";

/** The pages in groups, in order. */
export function settingsGroups(): SettingsGroup[] {
  const t = texts.settings;
  return [
    { sections: [{ id: "general", title: t.you }] },
    {
      title: t.groups.chat,
      sections: [
        { id: "connections", title: t.connections },
        { id: "models", title: texts.models.title },
        { id: "usage", title: texts.usage.title },
        { id: "memory", title: texts.memory.title },
        { id: "presets", title: texts.presets.title },
        { id: "templates", title: texts.promptTemplates.title },
        { id: "lorebooks", title: texts.lorebooks.title },
        { id: "regex", title: texts.regexScripts.title },
        { id: "tools", title: texts.toolsPage.title },
      ],
    },
    {
      title: t.groups.characters,
      sections: [
        { id: "characters", title: texts.nav.characters, path: "/characters" },
        { id: "personas", title: texts.personas.title },
      ],
    },
    {
      title: t.groups.media,
      sections: [{ id: "voice", title: texts.voice.title }, { id: "images", title: texts.images.title }],
    },
    { sections: [{ id: "privacy", title: texts.privacy.title }] },
    {
      title: t.groups.data,
      sections: [{ id: "data", title: t.dataPage }, { id: "trash", title: texts.trash.title }],
    },
    { sections: [{ id: "about", title: t.about }] },
  ];
}

/** Returns the path of a page. */
export function sectionPath({ id, path }: SettingsSection): string {
  return path ?? `${SETTINGS_PATH}/${id}`;
}

/** All settings, in the current language. */
export function settingEntries({ presetId }: SettingsContext): SettingEntry[] {
  const { general, connections, form, voice } = texts;
  const fields = texts.chatOptions.options.fields;
  const preset = `presets/${encodeURIComponent(presetId)}`;
  /** By page; the address is `/settings/<page>#<anchor>`. */
  const inside: Record<string, [anchor: string, title: string, page?: string][]> = {
    general: [
      ["display-name", general.displayName],
      ["language", general.language],
      ["theme", general.theme],
      ["size", general.size],
      ["reading", general.reading],
      ["hue", general.hue],
      ["send-on-enter", general.sendOnEnter],
      ["auto-title", general.autoTitle],
      ["after-restart", general.afterRestart],
      ["user-markdown", general.userMarkdown],
      ["color-speech", general.roleplay.colorSpeech],
      ["dim-actions", general.roleplay.dimActions],
      ["portrait-size", general.roleplay.portraitSize],
      ["message-style", general.roleplay.messageStyle],
      ["show-expressions", general.roleplay.expressions],
      ["chat-background", texts.background.title],
      ["notify", general.notify],
      ["push", `${general.notifications}: ${texts.push.title}`],
      ["shortcuts", texts.shortcuts.title],
    ],
    tools: [
      ["tool-servers", texts.toolServers.title],
      ["search-url", texts.webTools.title],
      ["", texts.toolCalls.list, "tools/calls"],
    ],
    memory: [["memory-proposals", texts.memory.proposals], ["memory-budget", texts.memory.budget]],
    personas: [["", texts.personas.setDefault]],
    lorebooks: [["", texts.lorebooks.import], ["", texts.lorebooks.parts.trial]],
    presets: [
      ["", texts.presets.import],
      ["", texts.presets.setDefault],
      ["prompts", texts.presets.fields.prompt_order, preset],
      ["temperature", fields.temperature, preset],
      ["top_p", fields.top_p, preset],
      ["max_tokens", fields.max_tokens, preset],
    ],
    connections: [
      ["", connections.discover],
      ["url", connections.add, "connections/new"],
      ["key", form.key, "connections/new"],
      ["model", form.model, "connections/new"],
      ["context", form.context, "connections/new"],
    ],
    privacy: [
      ["passkeys", texts.privacy.passkeys],
      ["phone", texts.phone.title],
      ["tokens", texts.privacy.tokens],
      ["program-access", texts.privacy.programs],
      ["tailnet", texts.tailnet.title],
    ],
    voice: [
      ["speech-url", voice.server],
      ["speech-format", voice.format],
      ["voice", voice.voice],
      ["speed", voice.speed],
      ["speech-voice", voice.quoted],
      ["narration-voice", voice.narration],
      ["auto-speak", voice.auto],
      ["voice-library", voice.library.title],
      ["transcription-url", texts.talk.settings.title],
    ],
    images: [["", texts.images.checkpoint], ["", texts.images.workflows]],
    usage: [["usage-models", texts.usage.price], ["usage-delete", texts.usage.delete]],
    trash: [["", texts.trash.empty]],
    data: [
      ["import", texts.import.from, "data/import"],
      ["export", texts.export.save],
      ["backups", texts.data.backups],
      ["backups", texts.backups.now],
      ["backup-folder", texts.backups.folder],
      ["backup-schedule", texts.backups.schedule],
      ["unreadable", texts.unreadable.title],
      ["space", texts.data.space],
      ["documents", texts.documents.title],
    ],
    about: [
      ["", texts.about.version],
      ["check-releases", texts.releases.check],
      ["", texts.releases.changelog, "about/changelog"],
      ["licences", texts.licenses.title],
      ["findings", texts.about.findings],
    ],
  };
  const keywords: Record<string, string> = texts.settings.keywords;
  return settingsGroups().flatMap(({ title: group, sections }) =>
    sections.flatMap((section) => {
      const place = section.title;
      return [
        {
          title: place,
          place: group ?? texts.settings.title,
          address: sectionPath(section),
          keywords: keywords[section.id] ?? "",
        },
        ...(inside[section.id] ?? []).map(([anchor, title, page = section.id]) => ({
          title,
          place,
          address: `/settings/${page}${anchor === "" || page === "data/import" ? "" : `#${anchor}`}`,
          keywords: keywords[anchor] ?? "",
        })),
      ];
    })
  );
}

/** Finds the settings whose title, page or keywords contain all words; those whose title does come first. */
export function findSettings(query: string, entries: readonly SettingEntry[]): SettingEntry[] {
  const words = foldForSearch(query).split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const rankOf = ({ title, place, keywords }: SettingEntry): number => {
    const name = foldForSearch(title);
    if (words.every((word) => name.includes(word))) return 0;
    const known = ` ${foldForSearch(keywords)}`;
    if (words.every((word) => name.includes(word) || known.includes(word))) return 1;
    const text = `${name} ${foldForSearch(place)}${known}`;
    return words.every((word) => text.includes(word)) ? 2 : 3;
  };
  // The sort is stable: within a rank the order is that of the pages.
  return entries.map((entry) => ({ entry, rank: rankOf(entry) })).filter(({ rank }) => rank < 3)
    .sort((a, b) => a.rank - b.rank).map(({ entry }) => entry);
}
