/** Texts of what helps after a failed reply. */
import type { cures as English } from "../en/cures.ts";

/** Japanese. */
export const cures: typeof English = {
  cures: {
    keyHint: (connection: string) => `「${connection}」用に暗号化して保存され、再び表示されることはありません。`,
    saveKey: "キーを保存して再試行",
    model: "このチャットのモデル",
    useModel: "使って再試行",
    noModels: (connection: string) => `「${connection}」にはモデルの一覧がありません`,
    download: (model: string) => `「${model}」をダウンロード`,
    downloading: (model: string) => `「${model}」をダウンロード中`,
    downloadingThenRetry: (model: string) => `「${model}」をダウンロード中です。完了後、メッセージを再送信します。`,
    retryWhenDownloaded: "完了後に再試行",
    downloadFailed: (model: string) => `「${model}」をダウンロードできませんでした`,
    waiting: (connection: string) => `「${connection}」が応答し次第、返信を再試行します。`,
    stopWaiting: "待つのをやめる",
    edit: "接続を編集",
    summary: "要約から始める",
    dropOldest: "最も古いメッセージを省く",
    shorter: (tokens: string) => `返信を ${tokens} トークンに制限`,
    summarizing: "古いメッセージを要約しています",
    dropped: (tokens: string) =>
      `このチャットで送信するのは最大 ${tokens} トークンになりました。上限はチャットのオプションにあります。`,
    nothingToDrop: "省ける古いメッセージがありません。最後のメッセージかシステムプロンプトを短くしてください。",
    noSummary: "モデルが要約を書きませんでした",
  },
};
