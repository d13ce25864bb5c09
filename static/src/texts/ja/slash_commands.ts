/** What the commands behind `/` do. */
import type { slashCommands as English } from "../en/slash_commands.ts";

/** Japanese. */
export const slashCommands: typeof English = {
  slashCommands: {
    new: "新しいチャット",
    temporary: "一時チャット（どこにも保存しません）",
    title: "このチャットの名前を変える",
    model: "モデルを選ぶ",
    persona: "名前で選んだペルソナとして話す",
    image: "最後のやり取りまたはプロンプトから画像を描く",
    lorebook: "キャラクターのロアブック",
    regenerate: "最後の返信を書き直す",
    continue: "最後の返信の続きを書く",
    write: "次の自分のメッセージを代わりに書く",
    fork: "最後のメッセージから分岐する",
    hide: "最後のメッセージをモデルから隠す、または再び見せる",
    delete: "最後のメッセージを削除する",
    search: "このチャット内を検索",
    options: "このチャットの設定",
    preview: "送信される内容",
    history: "以前のバージョン",
  },
};
