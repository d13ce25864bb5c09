/** What the owner looks after: data, backups, the installation. */
import type { upkeep as English } from "../en/upkeep.ts";

/** Japanese. */
export const upkeep: typeof English = {
  about: {
    version: "バージョン",
    text: "Parlor はご自身のマシンで動きます。このページはほかの場所から何も読み込みません。",
    licence: "Parlor は MIT ライセンスのフリーソフトウェアです。含まれる作品とその条件はここで読めます。",
    findings: "インストールの状態",
    findingsFailed: "インストールを確認できませんでした",
    looking: "確認しています",
    lookAgain: "もう一度確認",
    wrong: (n: number) => n === 0 ? "問題はありません。" : `直すべき点が ${n} 件あります。`,
    levels: { ok: "正常", note: "お知らせ", problem: "問題" },
  },

  data: {
    title: "データ",
    failed: "データを測定できませんでした",
    space: "使用容量",
    total: (size: string) => `合計 ${size}`,
    uses: {
      chats: "チャットと設定",
      characters: "キャラクター",
      attachments: "チャットの画像",
      models: "モデル",
      voices: "音声サンプル",
      rest: "その他",
    },
    backups: "バックアップ",
    noBackups: "自動バックアップは行われていません",
    noBackupsText: "backup_dir に別のディスクのフォルダーを設定すると、毎日バックアップが作られます。",
    daily: (folder: string, keep: number) => `毎日 ${folder} に作成し、新しいものから ${keep} 個を残します。`,
    noneYet: "まだありません。起動後まもなく最初のものが作られ、アクティビティに表示されます。",
    byHand: "サーバーを動かしたまま手動で作るには:",
    key: "バックアップを開くには保存用の鍵が必要です。parlor key export で控えを別の場所に保管してください。",
  },
};
