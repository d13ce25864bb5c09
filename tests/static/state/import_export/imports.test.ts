import { type Zippable, zipSync } from "fflate";
import { expect, test } from "vitest";
import { createClient } from "../../../../static/src/api/client.ts";
import { detectImportKind, Imports } from "../../../../static/src/state/import_export/imports.ts";
import type { Store } from "../../../../static/src/state/store.ts";
import { sillyTavernCard, sillyTavernPng } from "../../../helpers/files/cards.ts";
import { tavernFolder } from "../../../helpers/files/tavern_folder.ts";

const text = (value: string) => new TextEncoder().encode(value);
const zip = (files: Zippable) => zipSync(files) as Uint8Array<ArrayBuffer>;
const below = (folder: string, files: Record<string, Uint8Array>) =>
  Object.fromEntries(Object.entries(files).map(([path, bytes]) => [`${folder}/${path}`, bytes]));

test.each<[what: string, name: string, bytes: Uint8Array<ArrayBuffer>, kind: string | undefined]>([
  ["a folder of SillyTavern", "a.zip", zip(tavernFolder()), "sillytavern"],
  ["the same, some folders down", "a.zip", zip(below("data/default-user", tavernFolder())), "sillytavern"],
  ["chats in a zip", "a.zip", zip({ "Evening.jsonl": text("{}") }), "tavern"],
  ["an export of Parlor", "a.zip", zip({ "parlor-export.json": text("{}"), "characters/a.png": text("") }), "parlor"],
  ["an export of ChatGPT", "a.zip", zip({ "chat.html": text(""), "conversations.json": text("[]") }), "chatgpt"],
  ["its chats alone", "conversations.json", text('[{"title":"A","mapping":{"x":{}}}]'), "chatgpt"],
  ["chats of Claude", "e.json", text('[{"uuid":"1","name":"a","chat_messages":[]}]'), "claude"],
  [
    "a chat of LibreChat",
    "e.json",
    text('{"conversationId":"1","messages":[{"messageId":"a","isCreatedByUser":true}]}'),
    "librechat",
  ],
  [
    "an export of LobeChat",
    "e.json",
    text('{"exportType":"sessions","state":{"messages":[]},"version":7}'),
    "lobechat",
  ],
  [
    "the database of LobeChat",
    "e.json",
    text('{\n  "data": {"userSettings":[],"messages":[]},"mode":"postgres","schemaHash":"a"}'),
    "lobechat",
  ],
  ["a topic of LobeChat", "e.json", text('{"version":"2.0","title":"Evening","messages":[]}'), "lobechat"],
  ["an export of Chatbox", "e.json", text('{"__exported_items":["conversations"],"session:a1":{}}'), "chatbox"],
  ["a chat of LM Studio", "1.json", text('{"name":"Fox","messages":[{"currentlySelected":0}]}'), "lmstudio"],
  ["threads of Jan", "a.zip", zip({ "threads/a/thread.json": text("{}") }), "jan"],
  ["chats of llama.cpp", "e.json", text('[{"conv":{"id":"1"},"messages":[]}]'), "llamacpp"],
  ["a backup of Cherry Studio", "a.zip", zip({ "data.json": text("{}") }), "cherrystudio"],
  [
    "a file of Cherry Studio",
    "data.json",
    text('{"time":1,"version":5,"localStorage":{"persist:cherry-studio":"{}"}}'),
    "cherrystudio",
  ],
  ["logs of text-generation-webui", "a.zip", zip({ "logs/chat/Fox/1.json": text("{}") }), "textgen"],
  ["projects of Claude", "a.zip", zip({ "conversations.json": text("[]"), "projects.json": text("[]") }), "claude"],
  ["a save of KoboldCpp", "saved_story.json", text('{"gamestarted":true,"prompt":""}'), "koboldcpp"],
  ["a log of text-generation-webui", "1.json", text('{"internal":[["a","b"]],"visible":[]}'), "textgen"],
  [
    "an archive of Backyard AI",
    "Fox.byaf",
    zip({ "manifest.json": text("{}"), "characters/a/character.json": text("{}") }),
    "backyard",
  ],
  ["a dump of Character.AI", "1.json", text('{"info":{},"histories":{"histories":[]}}'), "characterai"],
  ["chats of Open WebUI", "e.json", text('[{"id":"1","chat":{"history":{"currentId":"a"}}}]'), "openwebui"],
  ["one chat", "Evening.jsonl", text('{"mes":"Hi"}\n'), "tavern"],
  ["one chat under another name", "Evening.txt", text('{"user_name":"A"}\n{"mes":"Hi"}\n'), "tavern"],
  ["a card as PNG", "Fox.png", sillyTavernPng(sillyTavernCard("Fox")), "card"],
  ["a card as JSON", "Fox.json", text(JSON.stringify(sillyTavernCard("Fox"))), "card"],
  ["a card as CHARX", "Fox.charx", zip({ "card.json": text("{}"), "assets/icon/a.png": text("") }), "card"],
  ["a chat of RisuAI", "chat.json", text('{"type":"risuChat","ver":1,"data":{}}'), "risuai"],
  ["a zip of other things", "a.zip", zip({ "notes.txt": text("") }), undefined],
  ["a zip that is cut off", "a.zip", zip(tavernFolder()).slice(0, 500), undefined],
  ["words", "a.txt", text("Once upon a time"), undefined],
  ["nothing", "a.json", new Uint8Array(), undefined],
])("detects %s", async (_, name, bytes, kind) => {
  expect(await detectImportKind(new File([bytes], name))).toBe(kind);
});

test("reads little of a large file", async () => {
  const files: Zippable = { "characters/big.png": [new Uint8Array(30_000_000), { level: 0 }] };
  const file = new File([zip(files)], "a.zip");
  let readBytes = 0;
  const slice = file.slice.bind(file);
  file.slice = (from, to, type) => {
    const part = slice(from, to, type);
    readBytes += part.size;
    return part;
  };
  expect(await detectImportKind(file)).toBe("sillytavern");
  expect(readBytes).toBeLessThan(1_000_000);
});

test("a file that is chosen before the page has asked what can be imported gets its kind and its limit", async () => {
  const importable = { kinds: ["tavern"], max_bytes: 20 };
  const client = createClient(() => Promise.resolve(Response.json(importable)), "http://localhost:8787");
  const imports = new Imports({ api: { client } } as unknown as Store);
  await imports.choose([new File(['{"mes":"Hi"}\n'], "Evening.jsonl")]);
  expect(imports.kind.value).toBe("tavern");
  const later = new Imports({ api: { client } } as unknown as Store);
  await later.choose([new File(['{"mes":"Good evening"}\n'], "Night.jsonl")]);
  expect(later.complaint.value).toBe("too_large");
});
