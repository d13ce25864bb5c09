/** Texts of selecting several items in a list. */
import type { selection as english } from "../en/selection.ts";

/** Japanese. */
export const selection: typeof english = {
  selection: {
    label: "選択中の項目",
    end: "選択を終了",
    all: "すべて選択",
    export: "エクスポート",
    count: (n: number) => `${n}件を選択中`,
    fileChats: (n: number) => `チャット${n}件をフォルダーに移動`,
    chatsRemoved: (n: number) => `チャット${n}件を削除しました`,
    chatsFiled: (n: number) => `チャット${n}件を移動しました`,
    chatsPinned: (n: number) => `チャット${n}件をピン留めしました`,
    chatsUnpinned: (n: number) => `チャット${n}件のピン留めを外しました`,
    fileCharacters: (n: number) => `キャラクター${n}件をフォルダーに移動`,
    charactersFiled: (n: number) => `キャラクター${n}件を移動しました`,
    charactersRemoved: (n: number) => `キャラクター${n}件を削除しました`,
    favored: (n: number) => `キャラクター${n}件をお気に入りに追加しました`,
    unfavored: (n: number) => `キャラクター${n}件をお気に入りから外しました`,
    favorite: "お気に入りに追加",
    unfavorite: "お気に入りから外す",
  },
};
