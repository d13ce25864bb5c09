/** Texts of quick replies, outside of the catalogs because the first screen loads those. */
import type { Language } from "./texts.ts";
import { language } from "./texts.ts";

const en = {
  quickReplies: "Quick replies",
  isScript: "SillyTavern script",
  scriptDoesNothing: (label: string) => `“${label}” is a SillyTavern script. Parlor doesn’t run scripts.`,
  showButton: "Show as a button above the composer",
  label: "Label",
  action: "When pressed",
  actionHint: "{{input}} in the text stands for what’s typed.",
  shownIn: "In chats with these characters",
  everywhere: "Without any, the button is in all chats.",
  onlyThere: (count: number) =>
    count === 1 ? "Also in one chat that it was imported with." : `Also in ${count} chats that it was imported with.`,
  showEverywhere: "Show in all chats",
  labelNeeded: "Enter a label",
  saveSets: "Save for SillyTavern",
  saveSet: (name: string) => `Save the set “${name}”`,
  actions: {
    insert_after: "Insert after what’s typed",
    insert_before: "Insert before what’s typed",
    send: "Send by itself",
    send_after: "Send after what’s typed",
    send_before: "Send before what’s typed",
  },
};

const de: typeof en = {
  quickReplies: "Schnellantworten",
  isScript: "SillyTavern-Skript",
  scriptDoesNothing: (label: string) => `„${label}“ ist ein SillyTavern-Skript. Parlor führt keine Skripte aus.`,
  showButton: "Als Schaltfläche über dem Eingabefeld zeigen",
  label: "Beschriftung",
  action: "Beim Drücken",
  actionHint: "{{input}} im Text steht für das Getippte.",
  shownIn: "In Chats mit diesen Figuren",
  everywhere: "Ohne Figuren ist die Schaltfläche in allen Chats.",
  onlyThere: (count: number) =>
    count === 1
      ? "Auch in einem Chat, mit dem sie importiert wurde."
      : `Auch in ${count} Chats, mit denen sie importiert wurde.`,
  showEverywhere: "In allen Chats zeigen",
  labelNeeded: "Geben Sie eine Beschriftung ein",
  saveSets: "Für SillyTavern speichern",
  saveSet: (name: string) => `Set „${name}“ speichern`,
  actions: {
    insert_after: "Nach dem Getippten einfügen",
    insert_before: "Vor dem Getippten einfügen",
    send: "Allein senden",
    send_after: "Nach dem Getippten senden",
    send_before: "Vor dem Getippten senden",
  },
};

const ja: typeof en = {
  quickReplies: "クイック返信",
  isScript: "SillyTavernのスクリプト",
  scriptDoesNothing: (label: string) => `「${label}」はSillyTavernのスクリプトです。Parlorはスクリプトを実行しません。`,
  showButton: "入力欄の上にボタンを表示",
  label: "ラベル",
  action: "押したとき",
  actionHint: "テキスト中の{{input}}は入力した文に置き換わります。",
  shownIn: "表示するチャットのキャラクター",
  everywhere: "キャラクターを選ばなければ、すべてのチャットに表示します。",
  onlyThere: (count: number) => `インポート元の${count}件のチャットにも表示します。`,
  showEverywhere: "すべてのチャットに表示",
  labelNeeded: "ラベルを入力してください",
  saveSets: "SillyTavern用に保存",
  saveSet: (name: string) => `セット「${name}」を保存`,
  actions: {
    insert_after: "入力の後ろに挿入",
    insert_before: "入力の前に挿入",
    send: "単独で送信",
    send_after: "入力の後ろに付けて送信",
    send_before: "入力の前に付けて送信",
  },
};

const all: Partial<Record<Language, typeof en>> = { en, de, ja };

/** Returns them in the current language. */
export function getQuickReplyTexts(): typeof en {
  return all[language.value] ?? en;
}
