/** The entries of the palette: chats, commands, models, settings; and the search over them. */
import { containsAllTerms, foldForSearch } from "../../../../services/json/search_fold.ts";
import { BUILTIN_PRESET_ID } from "../../api/documents.ts";
import type { CharacterItem } from "../../api/types.ts";
import type { IconName } from "../../components/Icon.tsx";
import type { Store } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import type { CommandName } from "../../state/chat/slash_commands.ts";
import { toVisibleText } from "../../texts/visible_text.ts";
import { EXPORTS, listChatCommands } from "../chat/chat_commands.ts";
import { settingEntries } from "../settings/settings_index.ts";
import { nameChat } from "../shell/chat_name.ts";

/** One entry. */
export interface PaletteEntry {
  key: string;
  title: string;
  /** Shown after the title: the page of a setting, the keys of a command. */
  hint?: string;
  /** Other words for it; not shown. */
  keywords?: string;
  icon: IconName;
  /** Characters whose portraits are shown instead of the icon. */
  avatarIds?: readonly string[];
  run: () => void;
}

/** Entries of one kind under their title. */
export interface PaletteGroup {
  title: string;
  entries: PaletteEntry[];
}

/** Most entries of one kind; typing narrows them. */
const SHOWN = { recent: 6, chats: 12, others: 8 };

/** Commands of the chat that work without one, so the palette has them on every screen. */
const GLOBAL: readonly CommandName[] = ["new", "temporary"];

/** Returns the matching entries, best first in each group; without a query recent chats and all commands. */
export function findEntries(query: string, store: Store, found: readonly CharacterItem[]): PaletteGroup[] {
  const words = foldForSearch(query).split(/\s+/).filter(Boolean);
  const go = (address: string) => () => store.router.go(address);
  const chats = store.chats.shown.value.map((item): PaletteEntry => ({
    key: item.id,
    title: nameChat(store.people, item).full,
    hint: item.is_branch ? texts.nav.branch : item.folder,
    avatarIds: item.character_ids,
    icon: item.pinned ? "pin" : "chat",
    run: go(`/c/${encodeURIComponent(item.id)}`),
  }));
  if (words.length === 0) {
    return withoutEmpty([
      { title: texts.paletteList.recent, entries: chats.slice(0, SHOWN.recent) },
      { title: texts.paletteList.thisChat, entries: listOfChat(store) },
      { title: texts.paletteList.commands, entries: listCommands(store) },
    ]);
  }
  const presetId = store.preferences.settings.value?.preset_id ?? BUILTIN_PRESET_ID;
  // The overview of shortcuts is a command already.
  const listed = settingEntries({ presetId }).filter(({ address }) => !address.endsWith("#shortcuts"));
  const settings = listed.map(({ title, place, address, keywords }): PaletteEntry => ({
    key: `${address} ${title}`,
    title,
    hint: place,
    keywords,
    icon: "gear",
    run: go(address),
  }));
  const characters = found.map(({ id, name, creator }): PaletteEntry => ({
    key: `character ${id}`,
    title: name,
    hint: creator || undefined,
    icon: "people",
    avatarIds: [id],
    run: go(`/characters/${encodeURIComponent(id)}`),
  }));
  const everywhere: PaletteEntry = {
    key: "everywhere",
    title: texts.paletteList.searchFor(query.trim()),
    icon: "search",
    run: go(`/search?${new URLSearchParams({ q: query.trim() })}`),
  };
  // A slash alone asks for the whole list, as in the composer.
  const most = query.trim() === "/" ? Infinity : SHOWN.others;
  return withoutEmpty([
    { title: texts.nav.chats, entries: findBest(chats, words, SHOWN.chats) },
    { title: texts.paletteList.thisChat, entries: findBest(listOfChat(store), words, most) },
    { title: texts.paletteList.commands, entries: findBest(listCommands(store), words, most) },
    { title: texts.paletteList.models, entries: findBest(listModels(store), words, SHOWN.others) },
    { title: texts.nav.settings, entries: findBest(settings, words, SHOWN.others) },
    // They arrive later and must not move the selection.
    { title: texts.nav.characters, entries: characters },
    { title: texts.search.title, entries: [everywhere] },
  ]);
}

/** The chat on the screen; undefined on other screens. */
function findOpenChat({ router, chat }: Store): OpenChat | undefined {
  return ["chat", "new_chat", "home"].includes(router.screen.value.name) ? chat.value : undefined;
}

/** The commands of the open chat, by the words of the slash menu. */
function listOfChat(store: Store): PaletteEntry[] {
  const chat = findOpenChat(store);
  if (chat === undefined) return [];
  return listChatCommands(store, chat).filter(({ name }) => !GLOBAL.includes(name)).flatMap(({ name, icon, run }) => {
    if (name === "export") {
      return EXPORTS.map((each): PaletteEntry => ({
        key: `export ${each.format}`,
        title: texts.nav.exportAs(each.name),
        hint: `/export ${each.name.toLowerCase()}`,
        icon,
        run: () => run(each.format),
      }));
    }
    return [{ key: `/${name}`, title: texts.slashCommands[name], hint: `/${name}`, icon, run }];
  });
}

/** The models of all connections that are known: listed by their servers, chosen before, or the default. */
function listModels(store: Store): PaletteEntry[] {
  const { connections, device } = store;
  const chosen = [...device.favoriteModels.value, ...device.recentModels.value];
  return connections.shown.value.filter(({ kind }) => kind !== "demo").flatMap((connection) => {
    const { id, name, model, resolved_model } = connection;
    const check = connections.checks.value.get(id);
    const listed = check?.kind === "done" ? check.result.models : [];
    const own = chosen.filter(({ connectionId }) => connectionId === id).map((choice) => choice.model);
    return [...new Set([...own, ...[model ?? resolved_model ?? ""], ...listed])].filter(Boolean).map((each) => ({
      key: `model ${id} ${each}`,
      title: toVisibleText(each),
      hint: toVisibleText(name),
      icon: "plug" as const,
      run: () => chooseModel(store, id, each),
    }));
  });
}

/** Chooses the model for the open chat, or for a new one. */
function chooseModel(store: Store, connectionId: string, model: string): void {
  store.device.rememberModel({ connectionId, model });
  const open = findOpenChat(store);
  if (open === undefined) store.router.go("/new");
  const chat = open ?? store.showNewChat();
  chat.change({ connection_id: connectionId, model }).catch((thrown) => store.report(thrown));
}

/** All global commands. */
function listCommands(store: Store): PaletteEntry[] {
  const { device, router } = store;
  const t = texts.paletteList;
  // Touch screens have no such keys.
  const keysOf = (name: Parameters<typeof formatShortcut>[0]) =>
    globalThis.matchMedia("(hover: none)").matches ? undefined : formatShortcut(name);
  const theme = (value: "system" | "light" | "dark") => () => {
    store.preferences.change({ theme: value }).catch((thrown) => store.report(thrown));
  };
  return [
    { key: "new", title: texts.nav.newChat, hint: keysOf("newChat"), icon: "plus", run: () => router.go("/new") },
    { key: "temporary", title: texts.slashCommands.temporary, icon: "temporary", run: () => router.go("/temporary") },
    { key: "search", title: texts.search.label, icon: "search", run: () => router.go("/search") },
    { key: "activity", title: texts.activity.title, icon: "activity", run: () => router.go("/activity") },
    { key: "library", title: texts.library.title, icon: "library", run: () => router.go("/library") },
    { key: "images", title: texts.gallery.title, icon: "image", run: () => router.go("/library/images") },
    { key: "trash", title: texts.trash.title, icon: "trash", run: () => router.go("/settings/trash") },
    {
      key: "sidebar",
      title: device.isSidebarFolded.value ? texts.nav.unfold : texts.nav.fold,
      icon: "sidebar",
      run: () => device.isSidebarFolded.value = !device.isSidebarFolded.value,
    },
    { key: "light", title: t.light, icon: "gear", run: theme("light") },
    { key: "dark", title: t.dark, icon: "gear", run: theme("dark") },
    { key: "system", title: t.system, icon: "gear", run: theme("system") },
    {
      key: "keys",
      title: texts.shortcuts.title,
      hint: keysOf("overview"),
      icon: "keyboard",
      run: () => store.overlay.value = "shortcuts",
    },
  ];
}

/**
 * Returns the entries that contain all words: first those that start with the first word, then those with a word that
 * does.
 */
function findBest(entries: readonly PaletteEntry[], words: readonly string[], limit: number): PaletteEntry[] {
  const ranked: { entry: PaletteEntry; rank: number }[] = [];
  for (const entry of entries) {
    const title = foldForSearch(entry.title);
    if (!containsAllTerms(`${title} ${foldForSearch(`${entry.hint ?? ""} ${entry.keywords ?? ""}`)}`, words)) continue;
    const first = words[0]!;
    const rank = title.startsWith(first) ? 0 : title.includes(` ${first}`) ? 1 : title.includes(first) ? 2 : 3;
    ranked.push({ entry, rank });
  }
  // The sort is stable: within a rank chats stay newest first.
  return ranked.sort((a, b) => a.rank - b.rank).slice(0, limit).map(({ entry }) => entry);
}

function withoutEmpty(groups: PaletteGroup[]): PaletteGroup[] {
  return groups.filter((group) => group.entries.length > 0);
}

/** Shortcuts of global commands, as named on this machine. */
export function formatShortcut(name: "palette" | "newChat" | "overview"): string {
  const isApple = /Mac|iPhone|iPad/.test(globalThis.navigator.platform);
  const main = isApple ? "⌘" : "Ctrl";
  return { palette: `${main} K`, newChat: isApple ? "⌘ ⇧ O" : "Ctrl Shift O", overview: "?" }[name];
}
