/**
 * The index of all settings, for the settings search and the command palette. A new setting needs a line here; `anchor`
 * is the id of its control.
 */
import { texts } from "../../texts/texts.ts";

/** A page of the settings. */
export interface SettingsSection {
  id: string;
  title: string;
}

/** One setting, or a whole page. */
export interface SettingEntry {
  title: string;
  /** Title of its page. */
  place: string;
  address: string;
}

/** The pages, in order. */
export function settingsSections(): SettingsSection[] {
  const t = texts.settings;
  return [
    { id: "general", title: t.general },
    { id: "connections", title: t.connections },
    { id: "personas", title: texts.personas.title },
    { id: "lorebooks", title: texts.lorebooks.title },
    { id: "presets", title: texts.presets.title },
    { id: "voice", title: texts.voice.title },
    { id: "images", title: texts.images.title },
    { id: "models", title: texts.models.title },
    { id: "privacy", title: texts.privacy.nav },
    { id: "data", title: texts.data.title },
    { id: "trash", title: texts.trash.title },
    { id: "about", title: t.about },
  ];
}

/** All settings, in the current language. */
export function settingEntries(): SettingEntry[] {
  const { general, connections, form, voice } = texts;
  const inside: Record<string, [anchor: string, title: string][]> = {
    general: [
      ["display-name", general.displayName],
      ["language", general.language],
      ["theme", general.theme],
      ["size", general.size],
      ["reading", general.reading],
      ["hue", general.hue],
      ["send-on-enter", general.sendOnEnter],
      ["auto-title", general.autoTitle],
      ["notify", general.notify],
    ],
    personas: [["", texts.personas.setDefault]],
    lorebooks: [["", texts.lorebooks.import], ["", texts.lorebooks.parts.trial]],
    presets: [["", texts.presets.import], ["", texts.presets.fields.prompt_order], ["", texts.presets.setDefault]],
    connections: [["", connections.discover], ["", form.key], ["", form.model], ["", form.context]],
    privacy: [["", texts.tailnet.title]],
    voice: [
      ["speech-url", voice.server],
      ["speech-format", voice.format],
      ["voice", voice.voice],
      ["speed", voice.speed],
      ["speech-voice", voice.quoted],
      ["narration-voice", voice.narration],
      ["auto-speak", voice.auto],
      ["voice-library", voice.library.title],
    ],
    images: [["", texts.images.checkpoint], ["", texts.images.workflows]],
    trash: [["", texts.trash.empty]],
    data: [
      ["export", texts.export.save],
      ["backups", texts.data.backups],
      ["backups", texts.backups.now],
      ["space", texts.data.space],
    ],
    about: [
      ["", texts.about.version],
      ["licences", texts.licenses.title],
      ["findings", texts.about.findings],
    ],
  };
  return settingsSections().flatMap(({ id, title: place }) => [
    { title: place, place: texts.settings.title, address: `/settings/${id}` },
    ...(inside[id] ?? []).map(([anchor, title]) => ({
      title,
      place,
      address: `/settings/${id}${anchor === "" ? "" : `#${anchor}`}`,
    })),
    ...(id === "data" ? [{ title: texts.import.from, place, address: "/settings/data/import" }] : []),
    ...(id === "connections" ? [{ title: connections.add, place, address: "/settings/connections/new" }] : []),
  ]);
}

/** Finds the settings whose title or page contains all words. */
export function findSettings(query: string, entries = settingEntries()): SettingEntry[] {
  const words = query.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return entries.filter(({ title, place }) => {
    const text = `${title} ${place}`.toLocaleLowerCase();
    return words.every((word) => text.includes(word));
  });
}
