"""Names that are known: what changes its object, what only looks, what a kernel brings along."""

from __future__ import annotations

import builtins


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTINS = frozenset(dir(builtins)) | {"__name__", "__doc__", "__file__", "__builtins__"}
# What every IPython kernel has besides.
PROVIDED = _words("display get_ipython exit quit open __session__ __spec__ __loader__ __package__")
# Earlier inputs and outputs by number: which ones depends on what ran before.
HISTORY = _words("_ __ ___ _i _ii _iii In Out _oh _ih _dh")

# Methods that change their object, even where the result is used.
MUTATORS = _words("""
    add append appendleft clear discard extend extendleft insert pop popitem popleft remove reverse
    rotate setdefault sort update difference_update intersection_update subtract
    symmetric_difference_update write writelines writerow writerows read readline readlines readinto
    seek truncate close flush send throw put get_nowait put_nowait acquire release recv
    set_index_inplace fill itemset resize setflags partial_fit fit fit_transform fit_predict
    fit_resample train step backward zero_grad load_state_dict load_weights compile
    execute executemany executescript fetchone fetchmany fetchall commit rollback
    __setitem__ __delitem__ __setattr__ __delattr__ __next__ __iadd__ __init__
    set set_params register register_forward_hook
    shuffle random randint randrange uniform choice choices sample normal integers
    standard_normal permutation permuted seed
""")
# Methods that change nothing, and whose result is a new object. In doubt a name is not here.
PURE_METHODS = _words("""
    head tail describe info copy deepcopy count index items keys values get isna isnull notna notnull
    mean median std var min max sum prod cumsum nunique unique value_counts corr cov quantile abs
    round astype nlargest nsmallest sort_values sort_index groupby agg aggregate merge join pivot
    pivot_table melt dropna fillna drop_duplicates duplicated rename reset_index set_index query
    assign isin between to_csv to_json to_parquet to_excel to_html to_markdown to_string to_dict
    to_list tolist to_numpy to_pickle to_sql plot hist boxplot any all argmax argmin argsort dot
    split rsplit splitlines strip lstrip rstrip lower upper title capitalize casefold replace format
    startswith endswith encode decode zfill isdigit isalpha isalnum isnumeric isspace islower
    isupper removeprefix removesuffix partition rpartition find rfind translate
    union intersection difference symmetric_difference issubset issuperset isdisjoint
    exists is_file is_dir stat read_text read_bytes resolve absolute predict predict_proba score
    transform get_params summary decision_function show savefig
    most_common elements total isoformat strftime timestamp date time bit_length conjugate
    sample_rows memory_usage nbytes equals compare select_dtypes filter where mask clip diff shift
    rank rolling expanding resample crosstab explode stack unstack transpose
""")
# Methods that may change their object, but leave their arguments as they are.
KEEPS_ARGUMENTS = (
    _words("""
    append add appendleft extend insert remove discard update setdefault write writelines writerow
    writerows fit fit_transform fit_predict fit_resample partial_fit log debug info warning error
    critical exception annotate axhline axvline bar barh boxplot contour contourf errorbar fill_between
    grid hist hist2d imshow invert_yaxis invert_xaxis legend pie plot scatter set_title set_xlabel
    set_ylabel set_xlim set_ylim set_xticks set_yticks set_xticklabels set_yticklabels suptitle
    text tick_params violinplot add_trace update_layout update_traces set_params put send execute
    executemany subplots_adjust tight_layout savefig
""")
    | PURE_METHODS
)
# Functions of libraries that change what is passed to them.
MUTATING_FUNCTIONS = _words("""
    shuffle heappush heappop heapify heapreplace heappushpop insort insort_left insort_right put
    place copyto fill_diagonal putmask setitem delitem iadd iconcat imul isub reload next
    set_node_attributes set_edge_attributes
""")
MUTATING_BUILTINS = _words("next setattr delattr anext")
SHOWING_BUILTINS = BUILTINS - MUTATING_BUILTINS
# Libraries whose functions show, save or time what they get, and leave it as it is.
SHOWING_MODULES = _words("""
    matplotlib seaborn plotly altair bokeh IPython logging warnings json pickle joblib os sys shutil
    pprint rich math statistics operator time datetime re string textwrap tabulate tqdm
    streamlit folium holoviews hvplot
""")
SHOWING_FUNCTIONS = _words("""
    save savetxt savez savez_compressed dump dumps imsave imwrite assert_allclose assert_array_equal
    assert_frame_equal assert_equal assert_almost_equal display print pprint seed manual_seed
    set_option set_printoptions simplefilter
""")
# What builtins give back: nothing of what went in, or a new object that holds it.
FRESH_RESULTS = _words("""
    len sum str repr int float bool complex abs round hash id ord chr bin hex oct format isinstance
    issubclass callable hasattr print range divmod pow any all ascii bytes input type
""")
HOLDING_RESULTS = _words("list tuple dict set frozenset sorted bytearray slice open")
# Made once, walked through once: looking at it changes it.
ONE_SHOT = _words("""
    iter map filter zip enumerate reversed open reader DictReader iterrows itertuples finditer iglob
    scandir walk glob rglob chain cycle count islice accumulate combinations permutations product
    groupby starmap takewhile dropwhile tee zip_longest pairwise batched urlopen aiter Popen
""") - {"count", "groupby"}  # those two names mean something else in pandas
OPAQUE_CALLS = _words("exec eval globals")
SWALLOWS = _words("suppress raises ignored assertRaises")

# --- IPython ---------------------------------------------------------------------------------------

# What runs the rest of the line, or the cell, as Python.
RUNS_PYTHON = _words("time capture prun memit mprun lprun timeit debug_time snakeviz")
FORGETS = _words("timeit memit mprun lprun prun snakeviz")  # names that it binds do not stay
QUIET_LINES = _words("""
    alias autoreload bookmark cd colors conda config dirs doctest_mode env hist history ls lsmagic ll
    load_ext logoff logon logstart magic mamba mkdir man matplotlib more notebook page pdef pdoc pfile
    pinfo pinfo2 pip popd pprint precision profile psearch psource pushd pwd pycat quickref rehashx
    reload_ext rmdir sc set_env sx system unalias unload_ext uv who who_ls whos xmode automagic
    autocall gui tb time_ext watermark cat cp mv rm lsmagic killbgscripts
""")
ENVIRONMENT_LINES = _words(
    "autoreload cd config env load_ext matplotlib pushd popd reload_ext set_env unload_ext gui"
)
OTHER_LANGUAGES = _words("""
    bash sh script html HTML javascript js latex markdown svg SVG writefile file perl ruby cmd system
    sx python python2 python3 pypy !
""")
