/**
 * Reads SillyTavern's quick replies as prompt templates, and writes them. Those of sets that are shown have a button above the composer,
 * in all chats or in those that the set is linked with.
 *
 * @see https://docs.sillytavern.app/usage/st-script/#quick-replies
 */
import { asArray, asNumber, asObject, asText, asTexts, type JsonObject } from "../../../json/type_guards.ts";
import {
  findTemplateProblem,
  isOriginShort,
  type PromptTemplate,
  type QuickReplyOrigin,
  TEMPLATE_LIMITS,
  type TemplateButton,
} from "../../../settings/prompt_templates.ts";
import type { ImportNote } from "../../import_item.ts";
import { createNamesNote } from "../../import_report.ts";
import { getStem } from "../../import_source.ts";
import { listObjects } from "../chat_files.ts";

/** A file of quick replies, or why it can't be read. */
export interface QuickReplyFile {
  source: string;
  json?: JsonObject;
  fault?: ImportNote;
}

/** Where a set is shown: everywhere, or in some chats. */
interface Shown {
  isEverywhere: boolean;
  characterIds: string[];
  conversationIds: string[];
}

/**
 * Reads all sets, the ones of all chats first, as in SillyTavern's bar.
 *
 * @param options.characters IDs by card file.
 * @param options.chats The links of chats with sets (`chat_metadata.quickReply`), by conversation ID.
 */
export function readQuickReplies(
  settings: JsonObject,
  sets: readonly QuickReplyFile[],
  { characters, chats }: { characters: ReadonlyMap<string, string>; chats: ReadonlyMap<string, unknown> },
): { templates: PromptTemplate[]; notes: ImportNote[] } {
  const places = findPlaces(settings, characters, chats);
  const order = [...places.keys()];
  const getRank = ({ source, json = {} }: QuickReplyFile) => {
    const rank = order.indexOf(getSetName(json, source));
    return rank < 0 ? order.length : rank;
  };
  const templates: PromptTemplate[] = [];
  const notes: ImportNote[] = [];
  for (const { source, json, fault } of sets.toSorted((a, b) => getRank(a) - getRank(b))) {
    if (fault !== undefined) notes.push(fault);
    else if (json !== undefined) notes.push(...readSet(json, source, places.get(getSetName(json, source)), templates));
  }
  return { templates, notes };
}

function getSetName(set: JsonObject, source: string): string {
  return asText(set.name) || getStem(source);
}

/** Returns where sets are shown, by name; nothing while quick replies are off. */
function findPlaces(
  settings: JsonObject,
  characters: ReadonlyMap<string, string>,
  chats: ReadonlyMap<string, unknown>,
): Map<string, Shown> {
  const { quickReplyV2, quickReply } = asObject(settings.extension_settings);
  const { isEnabled, config, characterConfigs } = asObject(quickReplyV2 ?? updateSettings(asObject(quickReply)));
  const places = new Map<string, Shown>();
  if (isEnabled !== true) return places;
  const getPlace = (set: string) => {
    const place = places.get(set) ?? { isEverywhere: false, characterIds: [], conversationIds: [] };
    places.set(set, place);
    return place;
  };
  for (const set of listShownSets(config)) getPlace(set).isEverywhere = true;
  for (const [id, links] of chats) for (const set of listShownSets(links)) getPlace(set).conversationIds.push(id);
  for (const [file, links] of Object.entries(asObject(characterConfigs))) {
    const id = characters.get(file);
    if (id !== undefined) { for (const set of listShownSets(links)) getPlace(set).characterIds.push(id); }
  }
  return places;
}

/** The settings before SillyTavern 1.12, as those of today. */
function updateSettings({ quickReplyEnabled, selectedPreset, name }: JsonObject): JsonObject {
  return {
    isEnabled: quickReplyEnabled,
    config: { setList: [{ set: asText(selectedPreset) || asText(name) || "Default" }] },
  };
}

function listShownSets(config: unknown): Set<string> {
  const shown = listObjects(asObject(config).setList).filter(({ isVisible }) => isVisible !== false);
  return new Set(shown.map(({ set }) => asText(set)));
}

/** Adds the replies of a set. Version 1 has them in slots, under other names. */
function readSet(
  set: JsonObject,
  source: string,
  shown: Shown | undefined,
  templates: PromptTemplate[],
): ImportNote[] {
  const action = getAction(set);
  const { name: _, qrList: __, quickReplySlots: ___, ...setFields } = set;
  const names: Record<"left" | "idle" | "menus" | "automatic" | "beyond", string[]> = {
    ...{ left: [], idle: [], menus: [], automatic: [], beyond: [] },
  };
  for (const reply of [...listObjects(set.qrList), ...listObjects(set.quickReplySlots)]) {
    const label = asText(reply.label) || asText(reply.title);
    const text = asText(reply.message) || asText(reply.mes);
    if (text.trim() === "") continue;
    const isScript = /^\s*\//.test(text);
    const hasButton = shown !== undefined && reply.isHidden !== true && reply.hidden !== true;
    if (isScript && !hasButton) {
      names.left.push(label);
      continue;
    }
    const name = createName(label, templates);
    const button = hasButton ? createButton(label.trim() || name, action, shown) : undefined;
    const { message: _, mes: __, ...fields } = reply;
    const origin: QuickReplyOrigin = { set: getSetName(set, source), set_fields: setFields, fields };
    const quick_reply = asArray(set.qrList).includes(reply) && isOriginShort(origin) ? origin : undefined;
    const template: PromptTemplate = { name, text, ...(button && { button }), ...(quick_reply && { quick_reply }) };
    if (findTemplateProblem([...templates, template]) !== undefined) {
      names.beyond.push(label);
      continue;
    }
    templates.push(template);
    if (isScript) names.idle.push(label);
    else if (startsByItself(reply)) names.automatic.push(label);
    if ([...asArray(reply.contextList), ...asArray(reply.contextMenu)].length > 0) names.menus.push(label);
  }
  return [
    createNamesNote(source, "quick_reply_scripts", names.left),
    createNamesNote(source, "quick_reply_scripts_shown", names.idle),
    createNamesNote(source, "quick_reply_menus", names.menus),
    createNamesNote(source, "quick_reply_automatic", names.automatic),
    createNamesNote(source, "quick_replies_beyond", names.beyond),
  ].filter(({ count }) => count !== 0);
}

function getAction(set: JsonObject): TemplateButton["action"] {
  const onlyInserts = (set.disableSend ?? set.quickActionEnabled) === true;
  const joins = (set.injectInput ?? set.AutoInputInject) === true;
  const isBefore = joins && (set.placeBeforeInput ?? set.placeBeforeInputEnabled) === true;
  if (onlyInserts) return isBefore ? "insert_before" : "insert_after";
  return !joins ? "send" : isBefore ? "send_before" : "send_after";
}

function createButton(
  label: string,
  action: TemplateButton["action"],
  { isEverywhere, characterIds, conversationIds }: Shown,
): TemplateButton {
  return {
    ...{ label: [...label].slice(0, TEMPLATE_LIMITS.labelChars / 2).join(""), action },
    ...(!isEverywhere && characterIds.length > 0 && { character_ids: characterIds }),
    ...(!isEverywhere && conversationIds.length > 0 && { conversation_ids: conversationIds }),
  };
}

/** Whether SillyTavern also executes a reply at some event. */
function startsByItself(reply: JsonObject): boolean {
  return Object.entries(reply).some(([name, value]) => /^(execute|autoExecute_)/.test(name) && value === true) ||
    asTexts([reply.automationId]).some((id) => id !== "");
}

/** Creates a name that templates may have and none has yet. */
function createName(label: string, templates: readonly PromptTemplate[]): string {
  const base = label.normalize("NFC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  const short = [...base].slice(0, 30).join("") || "reply";
  const isTaken = (name: string) => templates.some((one) => one.name.toLowerCase() === name.toLowerCase());
  for (let n = 1;; n++) {
    const name = n === 1 ? short : `${short}-${n}`;
    if (!isTaken(name)) return name;
  }
}

/** A set as SillyTavern stores it. */
export interface QuickReplySet extends JsonObject {
  name: string;
  qrList: JsonObject[];
}

/** Name of the set of templates that come from none. */
const OWN_SET = "Parlor";
const REPLY_DEFAULTS = {
  ...{ icon: "", showLabel: false, title: "", contextList: [], preventAutoExecute: true, executeOnStartup: false },
  ...{ executeOnUser: false, executeOnAi: false, executeOnChatChange: false, executeOnGroupMemberDraft: false },
  ...{ executeOnNewChat: false, executeBeforeGeneration: false, automationId: "" },
};

/**
 * Converts templates to sets, which SillyTavern imports. What a set and its replies had besides stays. In SillyTavern, the
 * action is that of the set, so that templates with another one are in a set of their own.
 */
export function toQuickReplySets(templates: readonly PromptTemplate[]): QuickReplySet[] {
  const groups = Map.groupBy(templates, ({ quick_reply: origin }) => origin?.set ?? OWN_SET);
  return [...groups].flatMap(([name, members]) => {
    const first = members.find(({ button }) => button !== undefined)?.button?.action ?? "insert_after";
    const byAction = Map.groupBy(members, ({ button }) => button?.action ?? first);
    return [...byAction].map(([action, own]) => toSet(action === first ? name : `${name} (${action})`, action, own));
  });
}

function toSet(name: string, action: TemplateButton["action"], templates: readonly PromptTemplate[]): QuickReplySet {
  const given: JsonObject = templates.find(({ quick_reply: origin }) => origin)?.quick_reply?.set_fields ?? {};
  const flags = {
    disableSend: action.startsWith("insert"),
    placeBeforeInput: action.endsWith("before"),
    injectInput: action.endsWith("before") || action === "send_after",
  };
  let next = Math.max(0, ...templates.map(({ quick_reply: origin }) => asNumber(origin?.fields.id) ?? 0));
  const qrList = templates.map((template) => toReply(template, () => ++next));
  return {
    ...{ version: 2, name, color: "transparent", onlyBorderColor: false, ...flags, ...given },
    // Several settings of a set may have the same effect.
    ...(getAction(given) !== action && flags),
    ...{ name, qrList, idIndex: Math.max(asNumber(given.idIndex) ?? 0, next) },
  };
}

function toReply({ name, text, button, quick_reply: origin }: PromptTemplate, createId: () => number): JsonObject {
  const { label: given, isHidden, ...fields } = origin?.fields ?? {};
  // Long labels are cut in Parlor.
  const label = button === undefined ? asText(given) || name : button.label;
  const isCut = asText(given).trim().startsWith(label);
  return {
    ...{ ...REPLY_DEFAULTS, ...fields, label: isCut ? given : label, message: text },
    isHidden: button === undefined ? isHidden ?? true : false,
    id: asNumber(fields.id) ?? createId(),
  };
}
