/** Texts of the slash commands. */
import type { slashCommands as English } from "../en/slash_commands.ts";

/** Japanese. */
export const slashCommands: typeof English = {
  slashCommands: {
    new: "新しいチャット",
    temporary: "一時チャット（保存されません）",
    title: "このチャットの名前を変更",
    model: "モデルを選ぶ",
    persona: "名前でペルソナを切り替える",
    image: "場面またはプロンプトから画像を生成",
    insert: "ツールサーバーのプロンプトやリソースを挿入",
    lorebook: "キャラクターのロアブックを開く",
    regenerate: "最後の返信を再生成",
    continue: "最後の返信の続きを書く",
    write: "次のメッセージを代わりに書く",
    fork: "最後のメッセージから分岐",
    hide: "最後のメッセージをモデルから隠す、または再び表示",
    delete: "最後のメッセージを削除",
    search: "このチャット内を検索",
    recall: "ほかのチャットの内容を探して引用",
    options: "チャットの設定",
    preview: "プロンプトのプレビュー",
    history: "以前のバージョン",
  },
};
