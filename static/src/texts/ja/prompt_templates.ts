/** Texts of the prompt templates. */
import type { Texts } from "../en/en.ts";

/** Japanese. */
export const promptTemplates: Pick<Texts, "promptTemplates"> = {
  promptTemplates: {
    title: "プロンプトのテンプレート",
    intro: "よく使う文章です。チャットで / と名前を入力すると挿入できます。",
    empty: "テンプレートはまだありません",
    emptyText: "要約や翻訳など、何度も頼むことを書いておきましょう。",
    add: "新しいテンプレート",
    edit: "テンプレートを編集",
    name: "名前",
    nameHint: "文字、数字、-、_ が使えます。スラッシュの後に入力する名前です。",
    nameWrong: "文字、数字、-、_ だけが使えます",
    nameTaken: "同じ名前のテンプレートがあります",
    text: "本文",
    textHint: "[[テーマ]]のように二重の角括弧で囲んだ語は、挿入するときに入力を求めます。",
    insert: "挿入",
    remove: (name: string) => `${name}を削除`,
    removed: (name: string) => `${name}を削除しました`,
  },
};
