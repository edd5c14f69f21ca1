"""The public list of the generalising rules: common English words for what people ask, want and talk about.

It was written down without looking at any records, and like the rules it never changes; a better list is a new rule.
"""

from typing import Final

_ASKING: Final = (
    "about after afternoon again all always another around back before between both cant current currently date dates "
    "day days different dont down during each early east evening every far few first hour hours how hows in last late "
    "later latest least left less long lot many midnight minute minutes month months more morning most much near "
    "nearby nearest never new next night no noon north not now off often old on once other out over recent right same "
    "second seconds since soon south third time times today tomorrow tonight under until up week weekend weeks west "
    "what whats when whens where wheres which while who whom whos whose why year years yes yesterday"
)
_DOING: Final = (
    "add adjust answer arrive ask book bring brush buy call cancel change charge check choose clean clear close come "
    "confirm connect continue convert cook count create cut decrease delete describe dim discuss drive drop eat edit "
    "email end enter explain fill find finish fix fly follow forget forward get give go going gone happen happening "
    "hear help hold increase install invite join keep know learn leave let like list listen live lock look lose lower "
    "make mark mean meet message move mute name need notify open order pause pay pick plan play playing post press "
    "print pull push put raise read ready record redo remind remove rename repeat replace reply report reschedule "
    "reserve reset resume return ring run save say schedule search see sell send set share show shuffle shut skip "
    "sleep slow snooze sort speak spell spend start stay stop store suggest switch take talk tell text think track "
    "transfer translate travel try turn tweet understand undo unmute update upload use view visit wait wake walk want "
    "wash watch wear work write"
)
_THINGS: Final = (
    "account address airport alarm alarms album amount app appointment appointments area article artist audiobook "
    "balance band bank bar bathroom battery beach bed bedroom bill bills birthday blue board boat books boss bottle "
    "box brand bread breakfast bright brightness brother building bus business cake calendar calls camera car card "
    "cards cat chair channel chapter chicken child children church city class clock cloud coffee cold color colour "
    "company computer concert contact contacts conversation cost country coupon cousin credit currency dad dark "
    "daughter dinner direction directions doctor document dog dollar dollars door drink driver emails euro event "
    "events exchange facebook family father fee file film fire flight flights floor food football forecast friend "
    "friends fruit fuel game games garage garden gas gate genre gift girl glass gold google grocery group hair hall "
    "hand headlines health heat heating high holiday home hospital hot hotel house humidity husband ice inbox "
    "information ingredients insurance interest internet item items job joke jokes journey key kids kitchen lamp "
    "language level library light lights limit line location loud low lunch machine mail man map market meal meaning "
    "meat meeting meetings menu messages milk mode mom money mother mountain movie movies mum music news newspaper "
    "note notes number office oil oven page paint paper parents park parking party passport password pasta payment "
    "people person phone photo picture pin pizza place places plane plans plant playlist podcast point police politics "
    "population pound power president price program project question radio rain rate recipe recipes red reminder "
    "reminders request reservation restaurant restaurants review reviews rewards rice road room round route routine "
    "salad sale sales school score sea seat security service shirt shoes shop shopping shower sink sister size sky "
    "snow social sofa son song songs sound soup speaker speed sport sports stairs station status stock stocks storm "
    "story street subway sugar summer sun sunny supermarket table task tasks tax taxi tea teacher team "
    "television temperature test theatre thing things ticket tickets timer timezone tip tire todo toilet tool town toy "
    "traffic train trains transaction trip tv twitter vacation vacuum vegetable video visa voice volume wall wallet "
    "war warm water weather website wedding white wife wifi wind window wine winter woman word words world zone"
)
_SAYING: Final = (
    "bad best better big black cheap common cool correct difficult double dry easy enough fast favorite favourite fine "
    "free full funny good great green half happy hard healthy heavy important interesting international large largest "
    "little local longest maximum minimum nice optimal own popular possible public quick quiet rainy real sad short "
    "silent simple small smart special strong sure sweet tall top total true weak wet whole wide worst wrong yellow "
    "young"
)

COMMON_WORDS: Final = frozenset(" ".join((_ASKING, _DOING, _THINGS, _SAYING)).split())
