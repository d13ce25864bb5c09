/** Connections to language models: their list, their state. */
import type { connections as English } from "../en/connections.ts";
import { counter } from "../plural.ts";

const count = counter("ja");

/** Japanese. */
export const connections: typeof English = {
  connection: {
    untested: "未テスト",
    refused: "応答しますが、アクセスを拒否しています",
    none: "接続中のモデルはありません",
    checking: "モデルを確認しています",
    ready: "準備完了",
    away: "接続できません",
    demo: "デモ",
  },

  connections: {
    searchAgain: "もう一度探す",
    testAll: "すべてテスト",
    hasKey: "キー保存済み",
    intro: "返信の送り元です。使われる接続は一度に一つです。",
    add: "接続を追加",
    discover: "サーバーを探す",
    searching: "サーバーを探しています",
    found: "見つかったサーバー",
    noneFound: "サーバーは見つかりませんでした",
    noneFoundAdvice: "llama.cpp、Ollama、LM Studio などを起動してもう一度探すか、アドレスを直接入力してください。",
    discoverFailed: "検索に失敗しました",
    addAndUse: "追加して使う",
    use: "使う",
    inUse: "使用中",
    activated: (name: string) => `これからは「${name}」が返信します`,
    saved: "接続を保存しました",
    removed: "接続を削除しました",
    remove: "削除",
    edit: "編集",
    test: "テスト",
    testing: "テスト中",
    models: (n: number) => count(n, { other: "個のモデル" }),
    starting: "起動中",
    needsKey: "キーが必要",
    none: "接続がまだありません",
    noneText: "このマシンでサーバーを探すか、アドレスを直接入力してください。",
    loadFailed: "接続を読み込めませんでした",
    kinds: { openai: "OpenAI 互換", anthropic: "Anthropic", demo: "デモ" },
    demoNote: "一語ずつ自動で返信します。言語モデルではありません。",
    unreadable: "保存された記録を読めません。削除してから接続を追加し直してください。",
    noModel: "サーバーが最初に示すモデル",
  },
};
