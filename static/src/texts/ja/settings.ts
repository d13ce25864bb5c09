/** The settings, but for connections. */
import type { settings as English } from "../en/settings.ts";
import { counter } from "../plural.ts";

const count = counter("ja");

/** Japanese. */
export const settings: typeof English = {
  settings: {
    search: "設定を検索",
    found: "見つかった設定",
    foundNone: "この語句を含む設定はありません。",
    foundCount: (n: number) => count(n, { other: "件の設定" }),
    title: "設定",
    sections: "項目",
    general: "一般",
    connections: "接続",
    about: "Parlor について",
    back: "チャットに戻る",
  },

  general: {
    displayName: "あなたの名前",
    displayNameHint: "キャラクターやモデルがあなたを呼ぶときに使います。",
    chats: "チャット",
    sendOnEnter: "Enter で送信",
    sendOnEnterHint: "Shift と Enter で改行します。オフにすると逆になります。",
    autoTitle: "チャットに自動で名前を付ける",
    autoTitleHint: "モデルが空いているときに題名を考えさせます。",
    notify: "返信が終わったら知らせる",
    notifyHint: "この端末で、ページが見えていないときに知らせます。ブラウザーの確認は一度だけです。",
    notifyRefused: "ブラウザーに拒否されました。ブラウザーの設定でこのページの通知を許可してください。",
    notifyImpossible: "このブラウザーでは、HTTPS または localhost でのみ通知を使えます。",
    look: "表示",
    note: "すべての端末に反映されます。",
    language: "言語",
    languageHint: "このページの言語です。モデルは、書きかけられた言語で返信します。",
    languageAuto: "ブラウザーに合わせる",
    theme: "テーマ",
    themes: { system: "システムに合わせる", light: "ライト", dark: "ダーク" },
    size: "文字の大きさ",
    percent: (n: number) => `${n} %`,
    reading: "本文の書体",
    sans: "ゴシック体",
    serif: "明朝体",
    hue: "アクセントの色",
    sample: "いろはにほへと ちりぬるを わかよたれそ つねならむ。夜は静かに更けていきます。",
  },
};
