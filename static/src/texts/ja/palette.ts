/** Texts of the command palette and the keyboard shortcuts. */
import type { palette as English } from "../en/palette.ts";

/** Japanese. */
export const palette: typeof English = {
  palette: {
    title: "コマンド",
    placeholder: "チャット、コマンド、設定を検索",
    recent: "最近のチャット",
    commands: "コマンド",
    searchFor: (query: string) => `すべてのチャットで「${query}」を検索`,
    light: "ライトテーマ",
    dark: "ダークテーマ",
    system: "システムのテーマ",
  },

  shortcuts: {
    title: "キーボードショートカット",
    everywhere: "どこでも",
    inChat: "チャットで",
    inLists: "一覧とメニューで",
    escape: "返信を停止し、次に開いているものを閉じる",
    send: "メッセージを送信",
    line: "改行",
    editLast: "自分の最後のメッセージを編集（入力欄が空のとき）",
    commands: "コマンドを表示（入力欄が空のとき）",
    variants: "最後の返信のほかのバージョン",
    find: "このチャット内を検索",
    step: "前または次の行",
    ends: "最初または最後の行",
  },
};
