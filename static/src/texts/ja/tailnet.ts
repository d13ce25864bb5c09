/** The node in the owner's tailnet. */
import type { tailnet as English } from "../en/tailnet.ts";

/** Japanese. */
export const tailnet: typeof English = {
  tailnet: {
    title: "Tailnet",
    intro:
      "Parlor をあなたの tailnet のマシンにします。どこからでも名前で届き、インターネットにポートを開きません。専用のノードを動かし、このマシンのノードには触れません。",
    loadFailed: "ノードの状態を読み込めませんでした",
    states: {
      disabled: "オフ",
      starting: "起動中",
      needs_auth: "サインイン待ち",
      running: "オン",
      stopped: "停止",
      error: "失敗",
    },
    name: "tailnet での名前",
    nameHint: "英小文字、数字、ハイフン。tailnet がドメインを付け、名前が使われていれば番号も付けます。",
    nameWrong: "英小文字、数字、ハイフンで 1～63 文字。先頭と末尾にハイフンは使えません",
    turnOn: "オンにする",
    before: "オンにする前に",
    beforeOpen:
      "tailnet にいる人は誰でも Parlor に届くようになります。新しいアドレスで最初のパスキーが作られるまでは、それだけで使えてしまいます。最初に開いてください。",
    beforeLog: "HTTPS では、名前が公開の証明書ログに載ります。",
    beforeClosed:
      "このマシンのほかのものは tailnet に閉じたままです。ただし 127.0.0.1 で待ち受ける UDP サービスは例外です。tailnet のアクセスルールでポート 80 と 443 だけを許可すれば、それも閉じられます。",
    starting: "ノードを起動しています。数秒かかります。最初の証明書には最長 1 分かかります。",
    stopping: "ノードをオフにしています。",
    signIn: "ノードをサインインさせる",
    signInText:
      "tailnet のアカウントでサインインさせてください。ここからでも、アカウントのある端末でこれを読み取っても。",
    signInQr: "サインイン用アドレスの QR コード",
    address: "アドレス",
    addressQr: "アドレスの QR コード",
    copied: "tailnet の端末で開き、そこでパスキーを作ってください。それまでは tailnet の誰もが使えます。",
    plain: "暗号化なしの HTTP",
    plainOpen:
      "このアドレスはパスキーで閉じられないため、tailnet の誰もがそこで Parlor を使えます。それを避けるには pairing = “code” を設定し、トークンでサインインしてください。",
    stopped: "このマシンで誰かがノードを停止しました。",
    failed: "ノードが失敗しました",
    notOn: "ノードをオンにできません",
    again: "もう一度試す",
    rename: "名前を変更",
    turnOff: "オフにする",
    turnOffAsk: "tailnet のノードをオフにしますか？",
    turnOffReach: (address: string) => `${address} では Parlor に届かなくなります。`,
    turnOffHere: "今このアドレスを使っています。このページは動かなくなります。",
    turnOffWipe:
      "ノードはサインアウトし、鍵や証明書を含め、持っているものはすべて削除されます。パスキーとチャットは残ります。",
    turnOffAgain:
      "もう一度使うには、改めてサインインが必要です。tailnet の一覧には古いマシンが残るため、そこで削除するまで新しい名前に番号が付くことがあります。",
    turnedOff: "tailnet のノードをオフにしました",
  },
};
