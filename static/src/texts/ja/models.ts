/** Models: the hub, downloads, those on disk, the one that runs. */
import type { models as English } from "../en/models.ts";
import { counter } from "../plural.ts";

const count = counter("ja");

/** Japanese. */
export const models: typeof English = {
  models: {
    title: "モデル",
    intro: "このマシンにある言語モデルと、新しいモデルの入手先です。",
    loadFailed: "モデルを読み込めませんでした",

    downloads: "ダウンロード",
    states: {
      queued: "待機中",
      running: "ダウンロード中",
      verifying: "検証中",
      done: "完了",
      failed: "失敗",
      cancelled: "中止",
    },
    amount: (done: string, total: string) => `${total} 中 ${done}`,
    rate: (size: string) => `毎秒 ${size}`,
    left: (time: string) => `残り ${time}`,
    downloadFailed: "ダウンロードが止まりました",
    cancel: "中止",
    resume: "再開",
    discard: "破棄",

    local: "このマシンにあるモデル",
    none: "まだモデルがありません",
    noneText: "下で検索してダウンロードしてください。models フォルダーに置いたファイルもここに表示されます。",
    projector: "画像認識部",
    parameters: (n: string) => `パラメーター ${n}`,
    contextOf: (n: string) => `コンテキスト ${n}`,
    memory: (size: string) => `メモリー ${size}`,
    remove: "削除",
    keep: "残す",
    deleteTitle: "このモデルを削除",
    deleteText: (path: string, size: string) =>
      `${path}（${size}）をディスクから削除します。あとで再びダウンロードできます。`,

    run: "ここで実行",
    runTitle: (name: string) => `${name}を実行`,
    start: "開始",
    stop: "停止",
    context: "コンテキストの大きさ（トークン）",
    contextHint: (n: string) => `このモデルは ${n} まで対応しています。大きいほどメモリーを使います。`,
    contextBad: "256 以上の整数",
    layers: "GPU に載せる層の数",
    layersHint: "空欄なら llama.cpp が決めます。",
    layersOf: (n: number) => `このモデルは ${n} 層です。`,
    layersBad: "整数",
    idle: "チャットがないときに停止するまでの分数",
    idleHint: "次のチャットで再び起動します。0 なら停止しません。",
    idleBad: "10,080 までの整数",
    activate: "これからのチャットにこのモデルで答える",
    noProgram: "llama-server が見つかりません",
    byHand: "または、次のコマンドで自分で実行し、接続に追加してください。",
    runFailed: "モデルが終了しました",
    log: "最後の出力",
    runnerStates: { stopped: "停止", starting: "起動中", running: "実行中", failed: "失敗" },

    search: "モデルを探す",
    query: "名前",
    queryExample: "例: qwen 4b",
    format: "形式",
    find: "検索",
    hubNote: "検索した言葉はモデルハブに送られます。",
    searchFailed: "検索に失敗しました",
    foundCount: (n: number) => count(n, { other: "件のモデルが見つかりました" }, " "),
    nothingFound: "この名前と形式のモデルはハブにありません。",
    more: "さらに表示",
    gated: "要申請",
    gatedText:
      "利用には所有者の許可が必要です。ハブで条件に同意し、トークンを書いたファイルを hub_token_file に指定してください。",
    downloadCount: (n: string) => `月間 ${n} ダウンロード`,
    showFiles: "ファイルを表示",
    filesFailed: "ファイルの一覧を取得できませんでした",
    noFiles: "この形式のファイルはありません。",
    shards: (n: number) => count(n, { other: "分割" }, " "),
    download: "ダウンロード",
    downloadSize: (size: string) => `${size} をダウンロード`,
    started: (name: string) => `${name}をダウンロードしています`,
  },
};
