/** Texts of the list of connections and their state. */
import type { connections as English } from "../en/connections.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("ja");

/** Japanese. */
export const connections: typeof English = {
  connection: {
    none: "モデルが接続されていません",
    checking: "モデルを確認しています",
    away: "接続できません",
    demo: "デモ",
    states: {
      unknown: "未テスト",
      running: "モデルを確認しています",
      good: "準備完了",
      bad: "接続できません",
      refused: "アクセスが拒否されました",
      starting: "モデルを読み込み中",
      busy: "混雑中",
      failing: "前回の返信に失敗",
    },
  },

  connections: {
    searchAgain: "もう一度探す",
    testAll: "すべてテスト",
    hasKey: "キー保存済み",
    intro: "モデルを動かすサーバーやサービスです。別の接続を選ばない限り、チャットでは使用中の接続が使われます。",
    add: "接続を追加",
    discover: "サーバーを探す",
    searching: "サーバーを探しています",
    found: "見つかったサーバー",
    noneFound: "サーバーは見つかりませんでした",
    noneFoundAdvice:
      "llama.cpp、Ollama、LM Studio などを起動して、もう一度探してください。または URL を入力してください。",
    discoverFailed: "検索に失敗しました",
    addAndUse: "追加して使う",
    use: "使う",
    inUse: "使用中",
    activated: (name: string) => `「${name}」を使用します`,
    saved: "接続を保存しました",
    removed: "接続を削除しました",
    remove: "削除",
    edit: "編集",
    test: "テスト",
    testing: "テスト中",
    models: (n: number) => count(n, { other: "個のモデル" }),
    starting: "起動中",
    needsKey: "キーが必要",
    none: "接続はまだありません",
    noneText: "このマシンでサーバーを探すか、URL を入力してください。",
    loadFailed: "接続を読み込めませんでした",
    kinds: {
      openai: "OpenAI 互換",
      "openai-responses": "OpenAI の Responses API",
      ollama: "Ollama",
      anthropic: "Anthropic",
      demo: "デモ",
    },
    demoNote: "内蔵のサンプル返信です。言語モデルではありません。",
    unreadable: "この接続を読み込めません。削除してから追加し直してください。",
    noModel: "サーバーの最初のモデル",
  },

  firstRun: {
    title: "言語モデルを接続する",
    text: "現在は内蔵のデモが返信しています。デモは言語モデルではありません。Parlor はこのマシンでモデルを探せます。",
    find: "モデルを探す",
    manual: "URL を入力",
    later: "後で",
  },
};
