/** Texts of the settings pages data, about and trash. */
import type { data as English } from "../en/data.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("ja");

/** Japanese. */
export const data: typeof English = {
  about: {
    version: "バージョン",
    text: "Parlor はご自身のマシンで動きます。このページはほかのサーバーから何も読み込みません。",
    licence:
      "Parlor は MIT ライセンスのフリーソフトウェアです。含まれるオープンソースパッケージには、それぞれのライセンスがあります。",
    findings: "動作状況の確認",
    findingsFailed: "動作状況を確認できませんでした",
    checking: "確認中",
    checkAgain: "もう一度確認",
    wrong: (n: number) => n === 0 ? "問題は見つかりませんでした。" : `${n} 件の問題が見つかりました。`,
    levels: { ok: "正常", note: "注意", problem: "問題" },
  },

  data: {
    title: "データ",
    failed: "使用容量を計算できませんでした",
    space: "ストレージ",
    total: (size: string) => `合計 ${size} を使用しています。`,
    uses: {
      chats: "チャットと設定",
      characters: "キャラクター",
      attachments: "チャットの画像と録音",
      documents: "文書",
      models: "モデル",
      voices: "音声サンプル",
      rest: "その他",
    },
    backups: "バックアップ",
    noneYet: "バックアップはまだありません。",
    byHand: "サーバーの実行中にコマンドラインからバックアップするには:",
    key: "バックアップの復元には保存用の鍵が必要です。parlor key export で書き出し、別の場所に保管してください。",
  },

  trash: {
    title: "ごみ箱",
    intro: "削除したものは 7 日間ここに残ります。",
    failed: "ごみ箱を読み込めませんでした",
    noneTitle: "ごみ箱は空です",
    noneText: "ここで行うことはありません。削除したものは 7 日間復元できます。",
    untitled: "無題",
    removedAt: (when: string) => `削除：${when}`,
    restore: "復元",
    restoreIt: (title: string) => `「${title}」を復元`,
    restored: (title: string) => `「${title}」を復元しました`,
    empty: "ごみ箱を空にする",
    emptied: "ごみ箱を空にしました",
    askTitle: "ごみ箱を空にしますか？",
    askText: (n: number) => `${count(n, { other: "件" })}を完全に削除します。元に戻せません。`,
    kinds: {
      conversation: "チャット",
      message: "メッセージ",
      character: "キャラクター",
      persona: "ペルソナ",
      workflow: "ワークフロー",
      voice: "音声",
      lorebook: "ロアブック",
      memory: "メモ",
      document: "文書",
      preset: "プリセット",
      attachment: "画像または録音",
    },
  },
};
