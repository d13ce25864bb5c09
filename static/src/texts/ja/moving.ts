/** Moving in and out: imports, the export, backups that are asked for, licences. */
import type { moving as English } from "../en/moving.ts";
import { counter } from "../plural.ts";

const count = counter("ja");

/** Japanese. */
export const moving: typeof English = {
  moving: {
    title: "インポート",
    intro:
      "ほかのプログラムのデータや Parlor のエクスポートを取り込みます。同じものは二重に入らず、ここにあるものは上書きされません。",
    back: "データに戻る",
    from: "SillyTavern、RisuAI、Agnai、ChatGPT、Open WebUI、Parlor からのインポート",
    start: "インポート",
    startHint:
      "ほかのプログラムのチャット、キャラクター、ペルソナ、ロアブック、プリセット、または Parlor のエクスポート。",
    chooseFile: "ファイルを選択",
    otherFile: "別のファイルを選択",
    dropHint: "zip、JSON、JSONL、キャラクターカードに対応します。ここにドロップすることもできます。",
    drop: "ドロップしてインポート",
    folder: "フォルダーは送れません。先に zip にまとめてから選んでください。",
    several: "ファイルは一度に 1 つです。zip には多くのファイルを入れられ、カードはまとめて選べます。",
    tooLarge: (limit: string) => `このサーバーが受け付ける大きさを超えています。上限は ${limit} です。`,
    files: (n: number) => `${count(n, { other: "ファイル" })}`,
    kind: "種類",
    kindUnknown: "選んでください",
    kindMissing: "ファイルから種類がわかりません。どこから来たものかを選んでください。",
    kinds: {
      sillytavern: "SillyTavern(data/default-user フォルダーの zip)",
      tavern: "Tavern 形式のチャット(JSONL またはその zip)",
      chatgpt: "ChatGPT のデータエクスポート",
      openwebui: "Open WebUI のチャットのエクスポート",
      parlor: "Parlor のエクスポート",
      risuai: "RisuAI",
      agnai: "Agnai",
      card: "キャラクターカード(PNG、JSON、CHARX)",
    },
    plainHttp:
      "このページは暗号化されていない HTTP で届きました。同じネットワークの人は送信中のファイルを読めます。Tailnet や HTTPS なら読まれません。",
    look: "中身を確認",
    lookHint: "何が入るかを確認するまで、何も変わりません。",
    sending: "ファイルを送信しています",
    rate: (amount: string) => `毎秒 ${amount}`,
    goesOn: "送信が終わるまでブラウザーのこのページを開いておいてください。その間も Parlor は使えます。",
    goesOnThere: "画面を離れても続きます。アクティビティにも表示されます。",
    sendFailed: "ファイルを送れませんでした",
    importFailed: "インポートに失敗しました",
    importFailedText: "それまでに入ったものは残ります。もう一度試しても二重にはなりません。",
    cancelled: "中止しました。ファイルは選ばれたままです。",
    trialTitle: "取り込まれるもの",
    trialNothing: "このファイルに新しいものはありません。",
    trialAll: "このファイルの内容はすべてすでにあります。",
    reportTitle: "取り込まれたもの",
    reportNothing: "新しいものは入りませんでした。",
    beforeTitle: "前回のインポート",
    bringIn: "取り込む",
    changeKind: "種類を選び直す",
    unknown: "インポートできる種類を読み込めませんでした",
    again: "ほかのものをインポート",
    endedWell: "インポートが終わりました",
    endedBadly: "インポートに失敗しました",
    lookedThrough: "ファイルの確認が終わりました",
    showReport: "表示",
    things: {
      conversation: (n: number) => `チャット ${count(n, { other: "件" })}`,
      character: (n: number) => `キャラクター ${count(n, { other: "件" })}`,
      persona: (n: number) => `ペルソナ ${count(n, { other: "件" })}`,
      lorebook: (n: number) => `ロアブック ${count(n, { other: "件" })}`,
      preset: (n: number) => `プリセット ${count(n, { other: "件" })}`,
      attachment: (n: number) => `画像 ${count(n, { other: "件" })}`,
    },
    messages: (n: number) => `メッセージ ${count(n, { other: "件" })}`,
    updated: (n: number) => `うち ${count(n, { other: "件" })}はここより新しい`,
    present: (n: number) => `${count(n, { other: "件" })}はすでにあります`,
    refused: (n: number) => `${count(n, { other: "件" })}は読めません`,
    isUpdated: "ここより新しく、以前の状態も残ります",
    unnamed: "無題",
    more: (n: number) => `ほか ${count(n, { other: "件" })}`,
    lines: {
      refused: (n: number) => `読めないもの ${count(n, { other: "件" })}`,
      left_out: (n: number) => `対象外のファイル ${count(n, { other: "種類" })}`,
      changed: (n: number) => `変わって入るもの ${count(n, { other: "件" })}`,
    },
    linesDropped: (n: number) => `ほかに、報告に収まらない行が ${count(n, { other: "行" })}あります`,
    showMore: (n: string) => `残りの ${n} 件を表示`,
    cardsIn: (n: number) => `キャラクターが ${count(n, { other: "件" })}入りました`,
    uploading: (name: string) => `「${name}」を送信しています`,
  },

  leaving: {
    title: "エクスポート",
    text: "ご自身のデータを 1 つの zip にまとめます。ほかで読んだり、別の Parlor に取り込んだりできます。",
    inside: "含まれるもの",
    insideText:
      "すべてのチャットと返信の各バージョン、その中の画像、キャラクター、ペルソナ、ロアブック、プリセット。通常のファイルとして入ります。",
    outside: "含まれないもの",
    outsideText:
      "接続とその鍵、パスキーとトークン、設定、音声、画像ワークフロー、モデル、以前の版、ごみ箱の中身。バックアップにはモデル以外のすべてが入ります。",
    unsealed: "暗号化されません。ファイルを持つ人は誰でも読めます。",
    save: "すべてをエクスポート",
    plainHttp:
      "このページは暗号化されていない HTTP で届きました。同じネットワークの人は途中ですべてを読めます。Tailnet や HTTPS を使うか、そのマシン自身でエクスポートしてください。",
    understood: "それでもエクスポート",
  },

  backups: {
    now: "今すぐバックアップ",
    running: "バックアップを作成しています",
    done: "バックアップができました",
    failed: "バックアップに失敗しました",
    kept: "自分で作ったものは、フォルダーから取り除くまで残ります。",
    sealed: "バックアップは封印されています。鍵かパスフレーズがなければ誰も読めません。",
    save: (name: string) => `${name} をダウンロード`,
    saveShort: "ダウンロード",
  },

  licences: {
    title: "ライセンス",
    show: "ライセンスを表示",
    failed: "ライセンスを読み込めませんでした",
    count: (n: number) => `パッケージ ${count(n, { other: "個" })}`,
    find: "パッケージを探す",
    none: "この文字を含むパッケージはありません。",
    noText: "このライセンスを名乗っていますが、本文は付属していません。",
  },
};
