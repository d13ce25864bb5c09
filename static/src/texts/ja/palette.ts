/** The command palette and the overview of keys. */
import type { palette as English } from "../en/palette.ts";

/** Japanese. */
export const palette: typeof English = {
  palette: {
    title: "コマンド",
    placeholder: "チャット、コマンド、設定",
    recent: "最近のチャット",
    commands: "コマンド",
    searchFor: (query: string) => `すべてのチャットで「${query}」を検索`,
    light: "ライトテーマ",
    dark: "ダークテーマ",
    system: "システムに合わせたテーマ",
  },

  shortcuts: {
    title: "キーボードショートカット",
    everywhere: "どこでも",
    inChat: "チャットで",
    inLists: "一覧とメニューで",
    escape: "返信を停止し、次に開いているものを閉じる",
    send: "メッセージを送信",
    line: "改行",
    editLast: "空の入力欄で：自分の最後のメッセージを編集",
    commands: "空の入力欄で：コマンド",
    variants: "最後の返信の別案",
    find: "このチャット内を検索",
    step: "一行進む、または戻る",
    ends: "最初と最後の行",
  },
};
